// Asks Kafka's published consumer assignors (4.1, rack-aware since KIP-881) what they would do: one JSON request a line in,
// one JSON answer a line out.
//
// Request: {"assignor": "range" | "cooperative-sticky", "members": [[id, rack or null, [topic, ...]], ...],
// "topics": {topic: [[rack of each replica], ...]}}. Answer: {id: {topic: [partition, ...]}}.
//
// Racks are replayed as one imaginary broker a rack; nothing is contacted.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

public final class KafkaConsumerAssignors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int NO_GENERATION = -1;

    public static void main(final String[] arguments) throws Exception {
        final BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            System.out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
    }

    private static Map<String, Map<String, List<Integer>>> answer(final JsonNode request) {
        final ConsumerPartitionAssignor assignor =
            request.get("assignor").asText().equals("range") ? new RangeAssignor() : new CooperativeStickyAssignor();
        final Map<String, Map<String, List<Integer>>> answer = new TreeMap<>();
        assignor.assign(cluster(request.get("topics")), new GroupSubscription(subscriptions(request.get("members"))))
            .groupAssignment()
            .forEach((member, assignment) -> answer.put(member, byTopic(assignment.partitions())));
        return answer;
    }

    private static Map<String, Subscription> subscriptions(final JsonNode members) {
        final Map<String, Subscription> subscriptions = new HashMap<>();
        for (final JsonNode member : members) {
            final List<String> topics = new ArrayList<>();
            member.get(2).forEach(topic -> topics.add(topic.asText()));
            final Optional<String> rack = Optional.ofNullable(member.get(1).textValue());
            subscriptions.put(member.get(0).asText(), new Subscription(topics, null, List.of(), NO_GENERATION, rack));
        }
        return subscriptions;
    }

    private static Cluster cluster(final JsonNode topics) {
        final Map<String, Node> brokers = new TreeMap<>();
        final List<PartitionInfo> partitions = new ArrayList<>();
        topics.fields().forEachRemaining(topic -> {
            for (int partition = 0; partition < topic.getValue().size(); partition++) {
                final List<Node> replicas = new ArrayList<>();
                topic.getValue().get(partition).forEach(rack -> replicas.add(brokers.computeIfAbsent(
                    rack.asText(), name -> new Node(brokers.size(), "broker", 9092, name))));
                final Node[] all = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic.getKey(), partition, all[0], all, all));
            }
        });
        return new Cluster("cluster", List.copyOf(brokers.values()), partitions, Set.of(), Set.of());
    }

    private static Map<String, List<Integer>> byTopic(final List<TopicPartition> partitions) {
        final Map<String, List<Integer>> topics = new TreeMap<>();
        partitions.forEach(one -> topics.computeIfAbsent(one.topic(), topic -> new ArrayList<>()).add(one.partition()));
        return topics;
    }
}
