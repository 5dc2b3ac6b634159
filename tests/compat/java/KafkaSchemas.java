import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Kafka's own message classes, a line for each field. Fields of a line stand between tabs:
 * "field", API key, "request" or "response", version, path, type, tag or "-";
 * "record", key, name, last version; "error", code, name, whether it is retriable; "level", metadata.version, "production" or "unstable", release.
 */
public class KafkaSchemas {
    public static void main(String[] args) {
        for (ApiKeys api : ApiKeys.values()) {
            schemas("request", api.id, api.messageType.requestSchemas());
            schemas("response", api.id, api.messageType.responseSchemas());
        }
        for (MetadataRecordType record : MetadataRecordType.values()) {
            print("record", record.id(), record.name(), record.highestSupportedVersion());
        }
        for (Errors error : Errors.values()) {
            print("error", error.code(), error.name(), error.exception() instanceof RetriableException);
        }
        for (MetadataVersion version : MetadataVersion.values()) {
            print("level", version.featureLevel(), version.isProduction() ? "production" : "unstable", version.version());
        }
    }

    private static void schemas(String side, short key, Schema[] schemas) {
        for (int version = 0; version < schemas.length; version++) {
            if (schemas[version] != null) {
                schema(key + "\t" + side + "\t" + version, "", schemas[version]);
            }
        }
    }

    private static void schema(String message, String path, Schema schema) {
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields) {
                print("field", message, path + "_tagged_fields", "tags", "-");
                for (Map.Entry<Integer, Field> tagged : new TreeMap<>(((TaggedFields) bound.def.type).fields()).entrySet()) {
                    field(message, path, tagged.getValue(), String.valueOf(tagged.getKey()));
                }
            } else {
                field(message, path, bound.def, "-");
            }
        }
    }

    private static void field(String message, String path, Field field, String tag) {
        Type type = field.type;
        Type inner = type.arrayElementType().orElse(type);
        String words = (type.isArray() ? "array " : "") + (inner instanceof Schema ? "struct" : inner.toString())
            + (type.isNullable() ? " nullable" : "");
        print("field", message, path + field.name, words.toLowerCase(Locale.ROOT), tag);
        if (inner instanceof Schema) {
            schema(message, path + field.name + ".", (Schema) inner);
        }
    }

    private static void print(Object... parts) {
        System.out.println(String.join("\t", java.util.Arrays.stream(parts).map(String::valueOf).toList()));
    }
}
