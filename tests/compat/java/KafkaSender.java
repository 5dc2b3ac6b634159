import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's own producer, acks=all, one record a line. In: NUMBER TOPIC RETRIES SECONDS
 * Out, when the record is answered: NUMBER, the exception's simple name or "-", its message, with tabs between.
 * The argument is bootstrap.servers. Each record has a producer of its own, as a restarted application would.
 */
public class KafkaSender {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] asked = line.split(" ");
            send(args[0], asked[0], asked[1], Integer.parseInt(asked[2]), 1000 * Integer.parseInt(asked[3]));
        }
    }

    private static void send(String servers, String number, String topic, int retries, int millis) {
        KafkaProducer<String, String> producer = new KafkaProducer<>(Map.of(
            "bootstrap.servers", servers, "acks", "all", "retries", retries, "enable.idempotence", retries > 0,
            "request.timeout.ms", millis / 2, "delivery.timeout.ms", millis, "max.block.ms", millis, "linger.ms", 0),
            new StringSerializer(), new StringSerializer());
        new Thread(() -> producer.send(new ProducerRecord<>(topic, number), (metadata, error) -> {
            String said = error == null ? "-\t" : error.getClass().getSimpleName() + "\t" + error.getMessage();
            synchronized (System.out) {
                System.out.println(number + "\t" + said.replace('\n', ' '));
            }
            new Thread(() -> producer.close()).start();
        })).start();
    }
}
