import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Kafka's own definitions of its configs, a line each: kind (broker, topic or group), key, type, default, validator,
 * and for brokers "read-only", "per-broker" or "cluster-wide". Fields stand between tabs; a null is "-".
 */
public class KafkaConfigDefinitions {
    public static void main(String[] args) throws Exception {
        java.lang.reflect.Field field = DynamicBrokerConfig.class.getDeclaredField("PER_BROKER_CONFIGS");
        field.setAccessible(true);
        Set<?> perBroker = (Set<?>) field.get(null);
        for (ConfigDef.ConfigKey key : sorted(AbstractKafkaConfig.CONFIG_DEF)) {
            String mode = !DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS.contains(key.name) ? "read-only"
                : perBroker.contains(key.name) ? "per-broker" : "cluster-wide";
            print("broker", key, mode);
        }
        for (ConfigDef.ConfigKey key : sorted(LogConfig.configDefCopy())) {
            print("topic", key, "-");
        }
        for (ConfigDef.ConfigKey key : sorted(GroupConfig.CONFIG_DEF)) {
            print("group", key, "-");
        }
    }

    private static Iterable<ConfigDef.ConfigKey> sorted(ConfigDef definitions) {
        Map<String, ConfigDef.ConfigKey> byName = new TreeMap<>(definitions.configKeys());
        return byName.values();
    }

    private static void print(String kind, ConfigDef.ConfigKey key, String mode) {
        String preset = key.hasDefault() && key.defaultValue != null
            ? ConfigDef.convertToString(key.defaultValue, key.type) : "-";
        String validator = key.validator == null || key.validator.toString().isEmpty() ? "-" : key.validator.toString();
        System.out.println(String.join("\t", kind, key.name, key.type.name().toLowerCase(Locale.ROOT), preset,
            validator.replace('\t', ' ').replace('\n', ' '), mode));
    }
}
