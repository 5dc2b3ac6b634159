import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.utils.internals.LogContext;

/**
 * Kafka's rack-aware partitioner (KIP-1123, from kafka-clients 4.4) as a filter: a line "rack p=rack p=rack ..." in, the partitions out
 * that it chooses for records without a key. "-" is no rack, "!" no leader.
 */
public class KafkaRackPartitioner {
    private static final int BATCHES = 2_000;
    private static final String TOPIC = "orders";

    public static void main(String[] arguments) throws Exception {
        Method next = BuiltInPartitioner.class.getDeclaredMethod("nextPartition", Cluster.class);
        next.setAccessible(true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            Cluster cluster = cluster(words);
            BuiltInPartitioner partitioner = new BuiltInPartitioner(new LogContext(), TOPIC, 16384, true, words[0]);
            Set<Integer> chosen = new TreeSet<>();
            for (int batch = 0; batch < BATCHES; batch++) {
                chosen.add((Integer) next.invoke(partitioner, cluster));
            }
            System.out.println(String.join(" ", chosen.stream().map(String::valueOf).toList()));
        }
    }

    private static Cluster cluster(String[] words) {
        Map<String, Node> nodes = new HashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int at = 1; at < words.length; at++) {
            String[] parts = words[at].split("=");
            String rack = parts[1];
            Node leader = rack.equals("!") ? null : nodes.computeIfAbsent(
                rack, name -> new Node(nodes.size() + 1, "host", 9092, name.equals("-") ? null : name));
            Node[] replicas = leader == null ? new Node[0] : new Node[] {leader};
            partitions.add(new PartitionInfo(TOPIC, Integer.parseInt(parts[0]), leader, replicas, replicas));
        }
        return new Cluster("id", nodes.values(), partitions, Set.of(), Set.of());
    }
}
