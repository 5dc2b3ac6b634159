// Writes what Kafka Streams' published classes put on the wire: for each version 1 to 11 one JSON line with the facts that
// went in and the bytes that came out. Argument: a seed.
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo;
import org.apache.kafka.streams.processor.internals.assignment.SubscriptionInfo;
import org.apache.kafka.streams.state.HostInfo;

public final class KafkaUserData {
    private static final int LATEST = 11;
    private static final int NAMED_TOPOLOGIES = 10;

    private final Random rng;
    private final int version;
    private final boolean named;

    private KafkaUserData(final long seed, final int version) {
        this.rng = new Random(seed * 100 + version);
        this.version = version;
        // A group has named topologies or none: Kafka cannot compare the two kinds of task.
        this.named = version >= NAMED_TOPOLOGIES && rng.nextBoolean();
    }

    public static void main(final String[] arguments) throws Exception {
        final ObjectMapper json = new ObjectMapper();
        for (int version = 1; version <= LATEST; version++) {
            final KafkaUserData one = new KafkaUserData(Long.parseLong(arguments[0]), version);
            System.out.println(json.writeValueAsString(Map.of(
                "version", version, "subscription", one.subscription(), "assignment", one.assignment())));
        }
    }

    private Map<String, Object> subscription() {
        final Map<TaskId, Long> sums = new TreeMap<>();
        for (final TaskId task : tasks()) {
            sums.put(task, rng.nextBoolean() ? -2L : version < 7 ? -3L : rng.nextLong(1_000_000_000_000L));
        }
        final UUID process = new UUID(rng.nextLong(), rng.nextLong());
        final Map<String, String> tags = version < 11 ? Map.of() : new TreeMap<>(Map.of("zone", "eu-1" + rng.nextInt(3), "rack", "r1"));
        final int error = version < 9 ? 0 : rng.nextInt(3);
        final String endPoint = version < 2 ? "" : "host-" + rng.nextInt(9) + ":9" + rng.nextInt(100);
        final ByteBuffer bytes = new SubscriptionInfo(
            version, LATEST, new ProcessId(process), endPoint, sums, (byte) rng.nextInt(100), error, tags).encode();
        final Map<String, Object> offsets = new TreeMap<>();
        sums.forEach((task, sum) -> offsets.put(task.toString(), sum));
        return Map.of("bytes", hex(bytes), "process_id", process.toString(), "end_point", endPoint,
            "offset_sums", offsets, "tags", new TreeMap<>(tags), "error_code", error);
    }

    private Map<String, Object> assignment() {
        final List<TaskId> active = new ArrayList<>();
        tasks().forEach(task -> {
            for (int source = rng.nextInt(1, 3); source > 0; source--) {
                active.add(task);
            }
        });
        final Map<TaskId, Set<TopicPartition>> standby = new TreeMap<>();
        tasks().forEach(task -> standby.put(task, partitions()));
        final int error = version < 4 ? 0 : rng.nextInt(5);
        final AssignmentInfo info = new AssignmentInfo(version, LATEST, active, standby, hosts(), hosts(), error);
        final long next = version < 7 || rng.nextBoolean() ? Long.MAX_VALUE : rng.nextLong(2_000_000_000_000L);
        info.setNextRebalanceTime(next);
        final Map<String, Object> standbys = new TreeMap<>();
        standby.forEach((task, sources) ->
            standbys.put(task.toString(), sources.stream().map(one -> one.topic() + ":" + one.partition()).sorted().toList()));
        return Map.of("bytes", hex(info.encode()), "active", active.stream().map(TaskId::toString).toList(),
            "standby", standbys, "error_code", error, "next_rebalance_ms", next);
    }

    private Set<TaskId> tasks() {
        final Set<TaskId> tasks = new HashSet<>();
        for (int count = rng.nextInt(6); count > 0; count--) {
            final String topology = named ? "bill" + rng.nextInt(2) : null;
            tasks.add(new TaskId(rng.nextInt(5), rng.nextInt(2000), topology));
        }
        return tasks;
    }

    private Set<TopicPartition> partitions() {
        final Set<TopicPartition> partitions = new HashSet<>();
        for (int count = rng.nextInt(1, 4); count > 0; count--) {
            partitions.add(new TopicPartition("orders-" + rng.nextInt(3), rng.nextInt(2000)));
        }
        return partitions;
    }

    private Map<HostInfo, Set<TopicPartition>> hosts() {
        final Map<HostInfo, Set<TopicPartition>> hosts = new java.util.HashMap<>();
        for (int count = rng.nextInt(3); count > 0; count--) {
            hosts.put(new HostInfo("host-" + count, 9000 + count), partitions());
        }
        return hosts;
    }

    private static String hex(final ByteBuffer bytes) {
        final byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return HexFormat.of().formatHex(copy);
    }
}
