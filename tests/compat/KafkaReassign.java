import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.metadata.placement.UsableBroker;
import org.apache.kafka.tools.reassign.ReassignPartitionsCommand;

/**
 * Asks Kafka's own reassignment tool, without a cluster.
 *
 *   parse FILE     reads a reassignment file as --execute does: a line a partition, or "refused: why"
 *   generate FILE  places as --generate does. FILE: lines "b ID RACK" and "p TOPIC PARTITION ID,ID". Prints milliseconds of
 *                  the fifth run, then a line a partition.
 */
public class KafkaReassign {
    public static void main(String[] words) throws Exception {
        if (words[0].equals("parse")) parse(Files.readString(Path.of(words[1])));
        else generate(Files.readAllLines(Path.of(words[1])));
    }

    static Method tool(String name, Class<?>... types) throws Exception {
        Method method = ReassignPartitionsCommand.class.getDeclaredMethod(name, types);
        method.setAccessible(true);
        return method;
    }

    @SuppressWarnings("unchecked")
    static void parse(String json) throws Exception {
        try {
            Object read = tool("parseExecuteAssignmentArgs", String.class).invoke(null, json);
            print(((Map.Entry<Map<TopicPartition, List<Integer>>, ?>) read).getKey());
        } catch (InvocationTargetException refused) {
            System.out.println("refused: " + refused.getCause().getMessage());
        }
    }

    @SuppressWarnings("unchecked")
    static void generate(List<String> lines) throws Exception {
        List<UsableBroker> brokers = new ArrayList<>();
        Map<TopicPartition, List<Integer>> current = new LinkedHashMap<>();
        for (String line : lines) {
            String[] words = line.split(" ");
            if (words[0].equals("b")) brokers.add(new UsableBroker(Integer.parseInt(words[1]), Optional.of(words[2]), false));
            else current.put(
                new TopicPartition(words[1], Integer.parseInt(words[2])),
                Stream.of(words[3].split(",")).map(Integer::valueOf).collect(Collectors.toList()));
        }
        Method place = tool("calculateAssignment", Map.class, List.class);
        Map<TopicPartition, List<Integer>> proposed = null;
        long nanos = 0;
        for (int run = 0; run < 5; run++) {
            long started = System.nanoTime();
            proposed = (Map<TopicPartition, List<Integer>>) place.invoke(null, current, brokers);
            nanos = System.nanoTime() - started;
        }
        System.out.println(nanos / 1_000_000);
        print(proposed);
    }

    static void print(Map<TopicPartition, List<Integer>> replicas) {
        StringBuilder text = new StringBuilder();
        replicas.entrySet().stream()
            .sorted(Comparator.comparing((Map.Entry<TopicPartition, ?> one) -> one.getKey().topic())
                .thenComparing(one -> one.getKey().partition()))
            .forEach(one -> text.append(one.getKey().topic()).append(' ').append(one.getKey().partition()).append(' ')
                .append(one.getValue().stream().map(String::valueOf).collect(Collectors.joining(","))).append('\n'));
        System.out.print(text);
    }
}
