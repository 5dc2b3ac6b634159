import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.RequestHeader;

/** The replica that each Fetch request names as a broker reads it, a line for each line of hexadecimal bytes; "malformed" if it cannot be read. */
public class KafkaFetchReplicas {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(replica(ByteBuffer.wrap(HexFormat.of().parseHex(line))));
        }
    }

    private static String replica(ByteBuffer request) {
        try {
            RequestHeader header = RequestHeader.parse(request);
            FetchRequestData data = new FetchRequestData(new ByteBufferAccessor(request), header.apiVersion());
            return String.valueOf(FetchRequest.replicaId(data));
        } catch (Throwable malformed) {
            return "malformed";
        }
    }
}
