import java.lang.reflect.Method;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Kafka's own definitions of its configs, a line each: kind (broker, topic or group), key, type, default, validator,
 * and for brokers "read-only", "per-broker" or "cluster-wide". Fields stand between tabs; a null is "-".
 */
public class KafkaConfigDefinitions {
    public static void main(String[] args) throws Exception {
        Class<?> dynamic = Class.forName("kafka.server.DynamicBrokerConfig");
        scala.collection.Set<?> changeable = (scala.collection.Set<?>) dynamic.getMethod("AllDynamicConfigs").invoke(null);
        Class<?> object = Class.forName("kafka.server.DynamicBrokerConfig$");
        java.lang.reflect.Field field = object.getDeclaredField("PerBrokerConfigs");
        field.setAccessible(true);
        scala.collection.Set<?> perBroker = (scala.collection.Set<?>) field.get(object.getField("MODULE$").get(null));
        for (ConfigDef.ConfigKey key : sorted(AbstractKafkaConfig.CONFIG_DEF)) {
            String mode = !contains(changeable, key.name) ? "read-only"
                : contains(perBroker, key.name) ? "per-broker" : "cluster-wide";
            print("broker", key, mode);
        }
        for (ConfigDef.ConfigKey key : sorted(LogConfig.configDefCopy())) {
            print("topic", key, "-");
        }
        Method groups = GroupConfig.class.getMethod("configDef");
        for (ConfigDef.ConfigKey key : sorted((ConfigDef) groups.invoke(null))) {
            print("group", key, "-");
        }
    }

    @SuppressWarnings("unchecked")
    private static boolean contains(scala.collection.Set<?> names, String name) {
        return ((scala.collection.Set<Object>) names).contains(name);
    }

    private static Iterable<ConfigDef.ConfigKey> sorted(ConfigDef definitions) {
        Map<String, ConfigDef.ConfigKey> byName = new TreeMap<>(definitions.configKeys());
        return byName.values();
    }

    private static void print(String kind, ConfigDef.ConfigKey key, String mode) {
        String preset = key.hasDefault() && key.defaultValue != null
            ? ConfigDef.convertToString(key.defaultValue, key.type) : "-";
        String validator = key.validator == null ? "-" : key.validator.toString();
        System.out.println(String.join("\t", kind, key.name, key.type.name().toLowerCase(Locale.ROOT), preset,
            validator.replace('\t', ' ').replace('\n', ' '), mode));
    }
}
