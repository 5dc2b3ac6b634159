// Asks Kafka's published placers (4.0) where they would put partitions: one JSON request a line in, one JSON answer a line out.
//
// Request: {"placer": "rack-alternated" | "striped", "brokers": [[id, rack or null, fenced], ...], "partitions": 6,
// "replicas": 3, "start_index": 0 or null, "start_partition": 0, "rng": "java" | "lcg64", "seed": 17, "topics": 1,
// "warmups": 0, "runs": 0}. Answer: {"topics": [[[broker, ...], ...], ...]} or {"error": ...}; with runs, their
// milliseconds instead: {"ms": [...]}.
//
// rack-alternated is AdminUtils, the algorithm of KIP-36, which 4.1 no longer has. Nothing is contacted.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.admin.AdminUtils;
import org.apache.kafka.admin.BrokerMetadata;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;

public final class KafkaPlacers {
    private static final ObjectMapper JSON = new ObjectMapper();

    interface Placing {
        List<List<Integer>> topic();
    }

    public static void main(final String[] arguments) throws Exception {
        final BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        final PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            answers.flush();
        }
    }

    private static ObjectNode answer(final JsonNode request) throws Exception {
        final ObjectNode answer = JSON.createObjectNode();
        try {
            final Placing placing = placing(request);
            if (request.path("runs").asInt() > 0) {
                time(request, placing, answer.putArray("ms"));
            } else {
                final ArrayNode topics = answer.putArray("topics");
                for (int topic = 0; topic < request.path("topics").asInt(1); topic++) {
                    topics.add(JSON.valueToTree(placing.topic()));
                }
            }
        } catch (final RuntimeException refusal) {
            answer.removeAll();
            answer.put("error", refusal.getMessage());
        }
        return answer;
    }

    private static void time(final JsonNode request, final Placing placing, final ArrayNode milliseconds) {
        for (int warmup = 0; warmup < request.path("warmups").asInt(); warmup++) {
            placing.topic();
        }
        for (int run = 0; run < request.get("runs").asInt(); run++) {
            final long begin = System.nanoTime();
            placing.topic();
            milliseconds.add((System.nanoTime() - begin) / 1e6);
        }
    }

    private static Placing placing(final JsonNode request) throws Exception {
        final List<UsableBroker> brokers = new ArrayList<>();
        for (final JsonNode one : request.get("brokers")) {
            brokers.add(new UsableBroker(one.get(0).asInt(), Optional.ofNullable(one.get(1).textValue()), one.get(2).asBoolean()));
        }
        return request.get("placer").asText().equals("striped") ? striped(request, brokers) : rackAlternated(request, brokers);
    }

    private static Placing striped(final JsonNode request, final List<UsableBroker> brokers) {
        final StripedReplicaPlacer placer = new StripedReplicaPlacer(rng(request));
        final PlacementSpec spec = new PlacementSpec(
            request.path("start_partition").asInt(), request.get("partitions").asInt(), (short) request.get("replicas").asInt());
        final ClusterDescriber cluster = new ClusterDescriber() {
            @Override
            public Iterator<UsableBroker> usableBrokers() {
                return brokers.iterator();
            }

            @Override
            public Uuid defaultDir(final int broker) {
                return DirectoryId.UNASSIGNED;
            }
        };
        return () -> {
            final List<List<Integer>> rows = new ArrayList<>();
            for (final PartitionAssignment partition : placer.place(spec, cluster).assignments()) {
                rows.add(partition.replicas());
            }
            return rows;
        };
    }

    private static Placing rackAlternated(final JsonNode request, final List<UsableBroker> brokers) throws Exception {
        // The generator is Kafka's own, so only its seed can be chosen.
        final Field field = AdminUtils.class.getDeclaredField("RAND");
        field.setAccessible(true);
        ((Random) field.get(null)).setSeed(request.path("seed").asLong());
        final List<BrokerMetadata> metadata = new ArrayList<>();
        for (final UsableBroker broker : brokers) {
            metadata.add(new BrokerMetadata(broker.id(), broker.rack()));
        }
        final int partitions = request.get("partitions").asInt();
        final int replicas = request.get("replicas").asInt();
        final int startIndex = request.path("start_index").asInt(-1);
        final int startPartition = request.path("start_partition").asInt(-1);
        return () -> new ArrayList<>(new TreeMap<>(
            (Map<Integer, List<Integer>>) AdminUtils.assignReplicasToBrokers(metadata, partitions, replicas, startIndex, startPartition)
        ).values());
    }

    private static Random rng(final JsonNode request) {
        final long seed = request.path("seed").asLong();
        return request.path("rng").asText().equals("lcg64") ? new Lcg64(seed) : new Random(seed);
    }

    /** The generator of Kafka's own placer tests. */
    static final class Lcg64 extends Random {
        private long state;

        Lcg64(final long seed) {
            state = seed;
        }

        @Override
        protected int next(final int bits) {
            state = state * 2862933555777941757L + 3037000493L;
            return (int) (state >>> (64 - bits));
        }
    }
}
