import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends numbered records for a while with the defaults of Kafka's own producer: OutageSender SERVERS TOPIC SECONDS.
 * Prints "ack NUMBER" or "error NUMBER REASON" for each when its client reports it.
 */
public class OutageSender {
    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0], topic = arguments[1];
        long until = System.nanoTime() + 1_000_000_000L * Integer.parseInt(arguments[2]);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", servers), new StringSerializer(), new StringSerializer())) {
            for (int number = 0; System.nanoTime() < until; number++) {
                String value = Integer.toString(number);
                producer.send(new ProducerRecord<>(topic, value), (metadata, error) -> {
                    String reported = error == null ? "ack " + value : "error " + value + " " + error.toString().replace('\n', ' ');
                    synchronized (System.out) {
                        System.out.println(reported);
                    }
                });
                Thread.sleep(20);
            }
        }
    }
}
