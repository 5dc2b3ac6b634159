// Asks Kafka's published placers (4.0) where they would put partitions: one JSON request a line in, one JSON answer a line out.
//
// Request: {"placer": "rack-alternated" | "striped", "brokers": [[id, rack or null, fenced], ...], "partitions": 6,
// "replicas": 3, "start_index": 0 or null, "start_partition": 0, "rng": "java" | "lcg64", "seed": 17, "topics": 1,
// "warmups": 0, "runs": 0, "array": false}. Answer: {"topics": [[[broker, ...], ...], ...]} or {"error": ...}; with runs, their
// milliseconds instead: {"ms": [...]}, of Kafka's method alone, up to the object that it returns; with "array" up to one
// int[] of all replicas.
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
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.admin.AdminUtils;
import org.apache.kafka.admin.BrokerMetadata;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.TopicAssignment;
import org.apache.kafka.metadata.placement.UsableBroker;

public final class KafkaPlacers {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** One call of Kafka's method, and what it returns in two other forms. */
    interface Placing<T> {
        T place();

        Collection<List<Integer>> rows(T placed);
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
            final Placing<?> placing = placing(request);
            if (request.path("runs").asInt() > 0) {
                time(request, placing, answer.putArray("ms"));
            } else {
                final ArrayNode topics = answer.putArray("topics");
                for (int topic = 0; topic < request.path("topics").asInt(1); topic++) {
                    topics.add(JSON.valueToTree(rows(placing)));
                }
            }
        } catch (final RuntimeException refusal) {
            answer.removeAll();
            answer.put("error", refusal.getMessage());
        }
        return answer;
    }

    private static <T> void time(final JsonNode request, final Placing<T> placing, final ArrayNode milliseconds) {
        final boolean array = request.path("array").asBoolean();
        for (int run = -request.path("warmups").asInt(); run < request.get("runs").asInt(); run++) {
            final long begin = System.nanoTime();
            final T placed = placing.place();
            final int[] flat = array ? flat(placing.rows(placed), request.get("replicas").asInt()) : null;
            final long end = System.nanoTime();
            // Read, so that neither result can be optimised away.
            if (placed.hashCode() == 42 && flat != null && flat[0] == -1) {
                throw new IllegalStateException();
            }
            if (run >= 0) {
                milliseconds.add((end - begin) / 1e6);
            }
        }
    }

    private static int[] flat(final Collection<List<Integer>> rows, final int replicas) {
        final int[] flat = new int[rows.size() * replicas];
        int at = 0;
        for (final List<Integer> row : rows) {
            for (int replica = 0; replica < replicas; replica++) {
                flat[at++] = row.get(replica);
            }
        }
        return flat;
    }

    private static <T> Collection<List<Integer>> rows(final Placing<T> placing) {
        return placing.rows(placing.place());
    }

    private static Placing<?> placing(final JsonNode request) throws Exception {
        final List<UsableBroker> brokers = new ArrayList<>();
        for (final JsonNode one : request.get("brokers")) {
            brokers.add(new UsableBroker(one.get(0).asInt(), Optional.ofNullable(one.get(1).textValue()), one.get(2).asBoolean()));
        }
        return request.get("placer").asText().equals("striped") ? striped(request, brokers) : rackAlternated(request, brokers);
    }

    private static Placing<?> striped(final JsonNode request, final List<UsableBroker> brokers) {
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
        return new Placing<TopicAssignment>() {
            @Override
            public TopicAssignment place() {
                return placer.place(spec, cluster);
            }

            @Override
            public Collection<List<Integer>> rows(final TopicAssignment placed) {
                final List<List<Integer>> rows = new ArrayList<>(placed.assignments().size());
                for (final PartitionAssignment partition : placed.assignments()) {
                    rows.add(partition.replicas());
                }
                return rows;
            }
        };
    }

    private static Placing<?> rackAlternated(final JsonNode request, final List<UsableBroker> brokers) throws Exception {
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
        return new Placing<Map<Integer, List<Integer>>>() {
            @Override
            public Map<Integer, List<Integer>> place() {
                return AdminUtils.assignReplicasToBrokers(metadata, partitions, replicas, startIndex, startPartition);
            }

            @Override
            public Collection<List<Integer>> rows(final Map<Integer, List<Integer>> placed) {
                final int first = Math.max(0, startPartition);
                final List<List<Integer>> rows = new ArrayList<>(placed.size());
                for (int partition = first; partition < first + placed.size(); partition++) {
                    rows.add(placed.get(partition));
                }
                return rows;
            }
        };
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
