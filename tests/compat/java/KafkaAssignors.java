// Asks Kafka Streams' published assignors (4.3.1) what they would do: one JSON request a line in, one JSON answer a line out.
//
// Request: {"mode": "active" | "standby" | "high-availability" | "sticky", "problem": {...}, "movable": "any" | "tags" | "racks"}
// The problem has rackspan's own format. Answer: {"cpu_ms": ..., "enabled": ..., "cost": {...}, "probing_rebalance": ...,
// "assignment": {...}} or {"error": ...}.
//
// {"mode": "configs"} gets {"defaults": {...}} for every config of Kafka Streams.
//
// Racks are replayed as one imaginary broker a rack; nothing is contacted.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.InternalTopicManager;
import org.apache.kafka.streams.processor.internals.TopologyMetadata.Subtopology;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.LegacyStickyTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.LegacyTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;

public final class KafkaAssignors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    public static void main(final String[] arguments) throws Exception {
        final BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            System.out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            System.out.flush();
        }
        // InternalTopicManager may leave a thread behind.
        Runtime.getRuntime().halt(0);
    }

    private static ObjectNode answer(final JsonNode request) {
        try {
            if (request.get("mode").asText().equals("configs")) {
                return configs();
            }
            return new Group(request.get("problem")).run(request.get("mode").asText(), request.path("movable").asText("any"));
        } catch (final Throwable thrown) {
            final Throwable cause = thrown.getCause() == null ? thrown : thrown.getCause();
            return JSON.createObjectNode().put("error", cause.toString());
        }
    }

    /** The default of each config of Kafka Streams; null where it has none. */
    private static ObjectNode configs() {
        final ObjectNode out = JSON.createObjectNode();
        out.set("defaults", JSON.valueToTree(new TreeMap<>(defaults())));
        return out;
    }

    private static Map<String, Object> defaults() {
        final Map<String, Object> found = new HashMap<>();
        StreamsConfig.configDef().configKeys().forEach((name, key) ->
            found.put(name, key.hasDefault() && (key.defaultValue instanceof Number || key.defaultValue instanceof List
                || key.defaultValue instanceof String) ? key.defaultValue : null));
        return found;
    }

    /** Answers from the problem where Kafka would run_requests the admin client. */
    private static final class Described extends InternalTopicManager {
        private final Map<String, List<TopicPartitionInfo>> topics;

        Described(final Map<String, List<TopicPartitionInfo>> topics) {
            super(Time.SYSTEM, null, new StreamsConfig(Map.of("application.id", "compat", "bootstrap.servers", "localhost:1")));
            this.topics = topics;
        }

        @Override
        public Map<String, List<TopicPartitionInfo>> getTopicPartitionInfo(final Set<String> wanted) {
            final Map<String, List<TopicPartitionInfo>> found = new HashMap<>(topics);
            found.keySet().retainAll(wanted);
            return found;
        }
    }

    private static final class Group {
        private final JsonNode problem;
        private final AssignmentConfigs configs;
        private final Map<TaskId, Set<TopicPartition>> sources = new HashMap<>();
        private final Map<TaskId, Set<TopicPartition>> changelogs = new HashMap<>();
        private final Map<Subtopology, Set<TaskId>> subtopologies = new HashMap<>();
        private final SortedSet<TaskId> stateful = new TreeSet<>();
        private final SortedSet<TaskId> stateless = new TreeSet<>();
        private final SortedMap<ProcessId, ClientState> clients = new TreeMap<>();
        private final RackAwareTaskAssignor racks;

        Group(final JsonNode problem) {
            this.problem = problem;
            this.configs = configs(problem.get("config"));
            problem.get("tasks").forEach(this::addTask);
            final Map<ProcessId, Map<String, Optional<String>>> clientRacks = new HashMap<>();
            for (final JsonNode client : problem.get("clients")) {
                final ProcessId id = new ProcessId(UUID.fromString(client.get("process_id").asText()));
                clientRacks.put(id, Map.of("consumer", Optional.ofNullable(client.path("rack").asText(null))));
                clients.put(id, clientState(id, client));
            }
            this.racks = rackAwareness(clientRacks);
        }

        private static AssignmentConfigs configs(final JsonNode given) {
            final List<String> tags = new ArrayList<>();
            given.path("rack_aware_assignment_tags").forEach(tag -> tags.add(tag.asText()));
            return new AssignmentConfigs(
                given.path("acceptable_recovery_lag").asLong(10_000L), given.path("max_warmup_replicas").asInt(2),
                given.path("num_standbys").asInt(0), given.path("probing_rebalance_interval_ms").asLong(600_000L), tags,
                number(given.get("traffic_cost")), number(given.get("non_overlap_cost")), given.get("strategy").asText());
        }

        private static OptionalInt number(final JsonNode value) {
            return value == null || value.isNull() ? OptionalInt.empty() : OptionalInt.of(value.asInt());
        }

        private void addTask(final JsonNode task) {
            final TaskId id = TaskId.parse(task.get("id").asText());
            (task.get("stateful").asBoolean() ? stateful : stateless).add(id);
            sources.put(id, partitions(task.get("source")));
            if (!task.path("changelog").isEmpty()) {
                changelogs.put(id, partitions(task.get("changelog")));
            }
            subtopologies.computeIfAbsent(new Subtopology(id.subtopology(), null), key -> new HashSet<>()).add(id);
        }

        private static Set<TopicPartition> partitions(final JsonNode names) {
            final Set<TopicPartition> found = new HashSet<>();
            names.forEach(name -> found.add(partition(name.asText())));
            return found;
        }

        private static TopicPartition partition(final String name) {
            final int colon = name.lastIndexOf(':');
            return new TopicPartition(name.substring(0, colon), Integer.parseInt(name.substring(colon + 1)));
        }

        private static Set<TaskId> tasks(final JsonNode names) {
            final Set<TaskId> found = new TreeSet<>();
            if (names != null) {
                names.forEach(name -> found.add(TaskId.parse(name.asText())));
            }
            return found;
        }

        private ClientState clientState(final ProcessId id, final JsonNode client) {
            final Set<TaskId> active = tasks(client.get("prev_active"));
            final Set<TaskId> standby = tasks(client.get("prev_standby"));
            final Map<TaskId, Long> lags = new HashMap<>();
            stateful.forEach(task -> lags.put(task, active.contains(task) ? -2L : standby.contains(task) ? 0L : Long.MAX_VALUE));
            client.path("lags").fields().forEachRemaining(lag -> lags.put(TaskId.parse(lag.getKey()), lag.getValue().asLong()));
            final Map<String, String> tags = new HashMap<>();
            client.path("tags").fields().forEachRemaining(tag -> tags.put(tag.getKey(), tag.getValue().asText()));
            return new ClientState(active, standby, lags, tags, client.get("threads").asInt(), id);
        }

        private RackAwareTaskAssignor rackAwareness(final Map<ProcessId, Map<String, Optional<String>>> clientRacks) {
            final Map<String, Node> brokers = new HashMap<>();
            final List<PartitionInfo> metadata = new ArrayList<>();
            final Map<String, List<TopicPartitionInfo>> described = new HashMap<>();
            problem.get("partitions").fields().forEachRemaining(entry -> {
                final TopicPartition name = partition(entry.getKey());
                final List<Node> replicas = new ArrayList<>();
                for (final JsonNode rack : entry.getValue()) {
                    final String shown = rack.asText(null);
                    replicas.add(brokers.computeIfAbsent(String.valueOf(shown),
                        key -> new Node(brokers.size(), "broker" + brokers.size(), 9092, rack.isNull() ? null : shown)));
                }
                final Node leader = replicas.isEmpty() ? null : replicas.get(0);
                final Node[] array = replicas.toArray(new Node[0]);
                metadata.add(new PartitionInfo(name.topic(), name.partition(), leader, array, array));
                described.computeIfAbsent(name.topic(), key -> new ArrayList<>())
                    .add(new TopicPartitionInfo(name.partition(), leader, replicas, replicas));
            });
            final Cluster cluster = new Cluster("compat", brokers.values(), metadata, Set.of(), Set.of());
            return new RackAwareTaskAssignor(
                cluster, sources, changelogs, subtopologies, clientRacks, new Described(described), configs, Time.SYSTEM);
        }

        ObjectNode run(final String mode, final String movable) throws Exception {
            final ObjectNode out = JSON.createObjectNode();
            final ObjectNode cost = out.putObject("cost");
            final boolean enabled = racks.canEnableRackAwareAssignor();
            out.put("enabled", enabled);
            final long started = THREADS.getCurrentThreadCpuTime();
            switch (mode) {
                case "active": optimizeActive(enabled, cost); break;
                case "standby": optimizeStandby(enabled, movable, cost); break;
                case "high-availability": out.put("probing_rebalance", assign(new HighAvailabilityTaskAssignor())); break;
                case "sticky": out.put("probing_rebalance", assign(new LegacyStickyTaskAssignor())); break;
                default: throw new IllegalArgumentException(mode);
            }
            out.put("cpu_ms", (THREADS.getCurrentThreadCpuTime() - started) / 1e6);
            out.set("assignment", assignment());
            return out;
        }

        private boolean assign(final LegacyTaskAssignor assignor) {
            final Set<TaskId> all = new HashSet<>(stateful);
            all.addAll(stateless);
            final Set<TaskId> withState = new HashSet<>();
            withState.addAll(stateful); // One by one, as Kafka fills it: a copied HashSet is walked in another order.
            return assignor.assign(clients, all, withState, racks, configs);
        }

        private void hold(final String key, final boolean active) {
            clients.forEach((id, state) -> tasks(problem.path(key).get(id.toString())).forEach(task -> {
                if (active) {
                    state.assignActive(task);
                } else {
                    state.assignStandby(task);
                }
            }));
        }

        private void optimizeActive(final boolean enabled, final ObjectNode cost) {
            hold("initial_active", true);
            if (enabled) {
                cost.put("stateful", racks.optimizeActiveTasks(stateful, clients,
                    configs.rackAwareTrafficCost().orElse(10), configs.rackAwareNonOverlapCost().orElse(1)));
                cost.put("stateless", racks.optimizeActiveTasks(stateless, clients, 1, 0));
            }
        }

        private void optimizeStandby(final boolean enabled, final String movable, final ObjectNode cost) throws Exception {
            hold("initial_active", true);
            hold("initial_standby", false);
            if (enabled) {
                cost.put("standby", racks.optimizeStandbyTasks(clients, configs.rackAwareTrafficCost().orElse(10),
                    configs.rackAwareNonOverlapCost().orElse(1), predicate(movable)));
            }
        }

        private RackAwareTaskAssignor.MoveStandbyTaskPredicate predicate(final String movable) throws Exception {
            if (movable.equals("any")) {
                return (source, destination, task, states) -> true;
            }
            final String factory = "org.apache.kafka.streams.processor.internals.assignment.StandbyTaskAssignorFactory";
            final Method create = Class.forName(factory).getDeclaredMethod("create", AssignmentConfigs.class, RackAwareTaskAssignor.class);
            create.setAccessible(true);
            final Object assignor = create.invoke(null, configs, movable.equals("racks") ? racks : null);
            final Method allowed = assignor.getClass()
                .getMethod("isAllowedTaskMovement", ClientState.class, ClientState.class, TaskId.class, Map.class);
            allowed.setAccessible(true);
            return (source, destination, task, states) -> {
                try {
                    return (Boolean) allowed.invoke(assignor, source, destination, task, states);
                } catch (final ReflectiveOperationException failed) {
                    throw new IllegalStateException(failed);
                }
            };
        }

        private ObjectNode assignment() {
            final ObjectNode out = JSON.createObjectNode();
            clients.forEach((id, state) -> {
                final ObjectNode held = out.putObject(id.toString());
                new TreeSet<>(state.activeTasks()).forEach(task -> held.withArray("active").add(task.toString()));
                new TreeSet<>(state.standbyTasks()).forEach(task -> held.withArray("standby").add(task.toString()));
            });
            return out;
        }
    }
}
