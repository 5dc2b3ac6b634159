// A small Kafka Streams application on the published jars: a sub-topology without state (clicks), one with a table (orders
// and customers), and one that counts behind a repartition topic. Argument: a properties file.
//
// Each line on standard input is answered by a line: the state, then the tasks of each thread as Kafka Streams itself tells
// them, and the bytes that its restore consumers have received from each broker: "RUNNING active=0_1,1_2 standby=1_0
// restored=1:7000,2:90". It ends when standard input does.
import java.io.BufferedReader;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.util.Properties;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TaskMetadata;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

public final class RackApp {
    public static void main(final String[] arguments) throws Exception {
        final Properties properties = new Properties();
        try (FileReader reader = new FileReader(arguments[0])) {
            properties.load(reader);
        }
        final KafkaStreams streams = new KafkaStreams(topology(properties.getProperty("sources.prefix")).build(), properties);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        final BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        while (questions.readLine() != null) {
            System.out.println(streams.state() + " active=" + tasks(streams, ThreadMetadata::activeTasks)
                + " standby=" + tasks(streams, ThreadMetadata::standbyTasks) + " restored=" + restored(streams));
        }
        // No farewell: closing takes seconds, and the group forgets whoever is silent.
        Runtime.getRuntime().halt(0);
    }

    private static String tasks(final KafkaStreams streams, final Function<ThreadMetadata, Set<TaskMetadata>> role) {
        return streams.metadataForLocalThreads().stream().flatMap(thread -> role.apply(thread).stream())
            .map(task -> task.taskId().toString()).sorted().collect(Collectors.joining(","));
    }

    private static String restored(final KafkaStreams streams) {
        return streams.metrics().entrySet().stream()
            .filter(metric -> metric.getKey().name().equals("incoming-byte-total"))
            .filter(metric -> metric.getKey().group().equals("consumer-node-metrics"))
            .filter(metric -> metric.getKey().tags().get("client-id").endsWith("restore-consumer"))
            .map(metric -> metric.getKey().tags().get("node-id").substring("node-".length()) + ":"
                + ((Double) metric.getValue().metricValue()).longValue())
            .sorted().collect(Collectors.joining(","));
    }

    private static StreamsBuilder topology(final String prefix) {
        final StreamsBuilder builder = new StreamsBuilder();
        final Consumed<String, String> strings = Consumed.with(Serdes.String(), Serdes.String());
        builder.stream(prefix + "clicks", strings)
            .filter((key, value) -> value != null)
            .to(prefix + "kept", Produced.with(Serdes.String(), Serdes.String()));
        final KStream<String, String> orders = builder.stream(prefix + "orders", strings);
        orders.join(
            builder.table(prefix + "customers", strings, Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("customers")),
            (order, customer) -> order + customer)
            .to(prefix + "kept", Produced.with(Serdes.String(), Serdes.String()));
        orders.groupBy((key, value) -> value, Grouped.with("counts", Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts").withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()));
        return builder;
    }
}
