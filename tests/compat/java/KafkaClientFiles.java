import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.nio.ByteBuffer;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLPeerUnverifiedException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.clients.ClientUtils;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;
import org.apache.kafka.common.utils.Utils;

/**
 * What Kafka's own classes make of each properties file of a folder, as one JSON document by file name: the values of an
 * admin client, the keys that it does not know, its JAAS entry, its addresses, and its TLS by handshakes in memory with servers
 * of one version each. Arguments: the folder, then PEM files of the servers' identity and of the authority that they trust.
 */
public class KafkaClientFiles {
    private static final String HOST = "broker.example";

    public static void main(String[] args) throws Exception {
        Map<String, Object> found = new TreeMap<>();
        for (File file : new File(args[0]).listFiles((folder, name) -> name.endsWith(".properties"))) {
            Map<String, Object> read = new TreeMap<>();
            try {
                read(file, args[1], args[2], read);
            } catch (Exception e) {
                read.clear();
                Throwable root = e;
                while (root.getCause() != null) root = root.getCause();
                read.put("error", e.getMessage() + " / " + root.getMessage());
            }
            found.put(file.getName(), read);
        }
        System.out.println(new ObjectMapper().writeValueAsString(found));
    }

    private static void read(File file, String identity, String authority, Map<String, Object> read) throws Exception {
        Properties properties = Utils.loadProps(file.getPath());
        properties.putIfAbsent("bootstrap.servers", "localhost:9092");
        AdminClientConfig config = new AdminClientConfig(properties);
        Map<String, Object> values = new TreeMap<>();
        List<String> unknown = new ArrayList<>();
        for (String name : properties.stringPropertyNames()) {
            if (name.startsWith("config.providers")) continue;
            if (!AdminClientConfig.configNames().contains(name)) {
                unknown.add(name);
                continue;
            }
            Object value = config.values().get(name);
            values.put(name, value instanceof Password password ? password.value()
                : value instanceof Class<?> type ? type.getName() : value);
        }
        Collections.sort(unknown);
        read.put("values", values);
        read.put("unknown", unknown);
        read.put("addresses", addresses(config));
        String protocol = config.getString("security.protocol").toUpperCase();
        if (protocol.startsWith("SASL")) {
            JaasContext context = JaasContext.loadClientContext(config.values());
            AppConfigurationEntry entry = context.configurationEntries().get(0);
            read.put("module", entry.getLoginModuleName());
            read.put("options", entry.getOptions());
        }
        if (protocol.endsWith("SSL")) {
            read.put("tls", tls(config, identity, authority));
        }
    }

    private static List<List<Object>> addresses(AdminClientConfig config) {
        List<String> urls = config.getList("bootstrap.servers");
        try {
            ClientUtils.parseAndValidateAddresses(urls, config.getString("client.dns.lookup"));
        } catch (ConfigException e) {
            // Names that no DNS has are no fault of the file.
            if (!e.getMessage().startsWith("No resolvable")) throw e;
        }
        List<List<Object>> found = new ArrayList<>();
        for (String url : urls) {
            found.add(List.of(Utils.getHost(url), Utils.getPort(url)));
        }
        return found;
    }

    private static Map<String, Object> tls(AdminClientConfig config, String identity, String authority) throws Exception {
        DefaultSslEngineFactory client = new DefaultSslEngineFactory();
        client.configure(config.values());
        Map<String, Object> found = new TreeMap<>();
        if (client.truststore() != null) {
            List<String> trusted = new ArrayList<>();
            for (String alias : Collections.list(client.truststore().aliases())) {
                trusted.add(digest(client.truststore().getCertificate(alias)));
            }
            Collections.sort(trusted);
            found.put("trusted", trusted);
        }
        for (String host : List.of(HOST, "other.example")) {
            Map<String, Object> versions = new TreeMap<>();
            for (String version : List.of("TLSv1.2", "TLSv1.3")) {
                DefaultSslEngineFactory server = new DefaultSslEngineFactory();
                Map<String, Object> configs = new HashMap<>();
                configs.put("ssl.protocol", "TLSv1.3");
                configs.put("ssl.enabled.protocols", List.of(version));
                configs.put("ssl.cipher.suites", List.of());
                configs.put("ssl.keystore.type", "PEM");
                configs.put("ssl.keystore.location", identity);
                configs.put("ssl.truststore.type", "PEM");
                configs.put("ssl.truststore.location", authority);
                configs.put("ssl.client.auth", "requested");
                server.configure(configs);
                SSLEngine from = client.createClientSslEngine(host, 9092,
                    config.getString("ssl.endpoint.identification.algorithm"));
                versions.put(version, shakeHands(from, server.createServerSslEngine(HOST, 9092)));
            }
            found.put(host, versions);
        }
        return found;
    }

    /** The cipher suite and the digests of the client's certificates, or null where there is no connection. */
    private static Object shakeHands(SSLEngine client, SSLEngine server) {
        try {
            ByteBuffer toServer = ByteBuffer.allocate(1 << 17);
            ByteBuffer toClient = ByteBuffer.allocate(1 << 17);
            client.beginHandshake();
            server.beginHandshake();
            for (int round = 0; round < 100; round++) {
                step(client, toServer, toClient);
                step(server, toClient, toServer);
            }
            if (shaking(client) || shaking(server) || client.isInboundDone() || server.isInboundDone()) return null;
            List<Object> found = new ArrayList<>();
            found.add(server.getSession().getCipherSuite());
            try {
                for (Certificate certificate : server.getSession().getPeerCertificates()) found.add(digest(certificate));
            } catch (SSLPeerUnverifiedException e) {
                // It showed none.
            }
            return found;
        } catch (Exception e) {
            return null;
        }
    }

    private static boolean shaking(SSLEngine engine) {
        return engine.getHandshakeStatus() != SSLEngineResult.HandshakeStatus.NOT_HANDSHAKING;
    }

    private static void step(SSLEngine engine, ByteBuffer out, ByteBuffer in) throws Exception {
        ByteBuffer nothing = ByteBuffer.allocate(1 << 16);
        while (true) {
            switch (engine.getHandshakeStatus()) {
                case NEED_TASK -> {
                    for (Runnable task = engine.getDelegatedTask(); task != null; task = engine.getDelegatedTask()) task.run();
                }
                case NEED_WRAP -> engine.wrap(ByteBuffer.allocate(0), out);
                default -> {
                    in.flip();
                    boolean had = in.hasRemaining();
                    nothing.clear();
                    SSLEngineResult result = had ? engine.unwrap(in, nothing) : null;
                    in.compact();
                    if (!had || result.getStatus() != SSLEngineResult.Status.OK || result.bytesConsumed() == 0) {
                        if (result == null || result.getHandshakeStatus() != SSLEngineResult.HandshakeStatus.NEED_TASK) return;
                    }
                }
            }
        }
    }

    private static String digest(Certificate certificate) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(certificate.getEncoded()));
    }
}
