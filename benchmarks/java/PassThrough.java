import java.nio.file.Files;
import java.nio.file.Path;

import io.kroxylicious.proxy.KafkaProxy;
import io.kroxylicious.proxy.config.ConfigParser;
import io.kroxylicious.proxy.internal.config.Features;

/** Kroxylicious without filters: its application is not published by Maven coordinates, its runtime is. */
public final class PassThrough {
    public static void main(String[] arguments) throws Exception {
        ConfigParser parser = new ConfigParser();
        String config = Files.readString(Path.of(arguments[0]));
        try (KafkaProxy proxy = new KafkaProxy(parser, parser.parseConfiguration(config), Features.defaultFeatures())) {
            proxy.startup();
            System.out.println("listening");
            proxy.block();
        }
    }
}
