import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Message;

/**
 * Kafka's own classes for the records of its coordinators, as a filter. A line in:
 * {"kind": "OffsetCommitValue", "version": 3, "json": {...}}   answered by   {"hex": "0003..."}
 * {"kind": "OffsetCommitValue", "hex": "0003..."}              answered by   {"version": 3, "json": {...}}
 * The leading int16 is the version for a value, the record type for a key.
 */
public class KafkaCoordinatorRecords {
    private static final ObjectMapper JSON = new ObjectMapper();

    static {
        JSON.getFactory().enable(JsonGenerator.Feature.ESCAPE_NON_ASCII); // Whatever the terminal's encoding is.
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = JSON.readTree(line);
            System.out.println(JSON.writeValueAsString(asked.has("hex") ? read(asked) : write(asked)));
        }
    }

    private static ObjectNode write(JsonNode asked) throws Exception {
        String kind = asked.get("kind").asText();
        short version = isKey(kind) ? 0 : (short) asked.get("version").asInt();
        Object message = Class.forName(name(kind) + "JsonConverter")
            .getMethod("read", JsonNode.class, short.class).invoke(null, asked.get("json"), version);
        byte[] bytes = MessageUtil.toVersionPrefixedBytes(version, (Message) message);
        if (isKey(kind)) {
            ByteBuffer.wrap(bytes).putShort(((ApiMessage) message).apiKey());
        }
        return JSON.createObjectNode().put("hex", HexFormat.of().formatHex(bytes));
    }

    private static ObjectNode read(JsonNode asked) throws Exception {
        String kind = asked.get("kind").asText();
        ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(asked.get("hex").asText()));
        short prefix = bytes.getShort();
        short version = isKey(kind) ? 0 : prefix;
        Class<?> type = Class.forName(name(kind));
        Message message = (Message) type.getConstructor().newInstance();
        message.read(new ByteBufferAccessor(bytes), version);
        if (bytes.hasRemaining()) {
            throw new IllegalStateException(bytes.remaining() + " bytes left over of " + asked);
        }
        JsonNode json = (JsonNode) Class.forName(name(kind) + "JsonConverter")
            .getMethod("write", type, short.class).invoke(null, message, version);
        ObjectNode answer = JSON.createObjectNode().put("version", prefix);
        answer.set("json", json);
        return answer;
    }

    private static boolean isKey(String kind) {
        return kind.endsWith("Key");
    }

    private static String name(String kind) {
        String room = kind.startsWith("TransactionLog") ? "transaction" : "group";
        return "org.apache.kafka.coordinator." + room + ".generated." + kind;
    }
}
