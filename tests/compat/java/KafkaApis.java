import org.apache.kafka.common.protocol.ApiKeys;

/** Kafka's APIs, a line for each: key, name, whether it is an action of the cluster itself, the kinds of listeners that have it, between tabs. */
public class KafkaApis {
    public static void main(String[] args) {
        for (ApiKeys api : ApiKeys.values()) {
            System.out.printf("%d\t%s\t%b\t%s%n", api.id, api.name, api.clusterAction, api.messageType.listeners());
        }
    }
}
