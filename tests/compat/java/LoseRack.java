import java.net.ConnectException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Loses a rack of a practice cluster and gets it back: LoseRack CONTROL TOKEN RACK BROKER, addresses as HOST:PORT. */
public class LoseRack {
    public static void main(String[] arguments) throws Exception {
        String control = arguments[0], token = arguments[1], rack = arguments[2], broker = arguments[3];
        System.out.println("before " + responds(broker));
        System.out.println(post(control, token, "/lose", rack));
        System.out.println("lost " + responds(broker));
        System.out.println(post(control, token, "/restore", rack));
        System.out.println("restored " + responds(broker));
    }

    static String post(String control, String token, String fault, String rack) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://" + control + fault))
            .header("Authorization", "Bearer " + token)
            .POST(HttpRequest.BodyPublishers.ofString("{\"racks\": [\"" + rack + "\"]}"))
            .build();
        HttpResponse<String> response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        return fault + " " + response.statusCode();
    }

    static boolean responds(String broker) throws Exception {
        String[] address = broker.split(":");
        try (Socket socket = new Socket(address[0], Integer.parseInt(address[1]))) {
            return true;
        } catch (ConnectException refused) {
            return false;
        }
    }
}
