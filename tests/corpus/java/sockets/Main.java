import com.sun.net.httpserver.HttpServer;
import java.io.*;
import java.net.*;
import java.net.http.*;
import java.nio.charset.StandardCharsets;

/** A web server with its client, a line server, datagrams. */
public class Main {
    public static void main(String[] args) throws Exception {
        var web = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        web.createContext("/echo", exchange -> {
            var body = exchange.getRequestBody().readAllBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        web.start();
        var base = "http://127.0.0.1:" + web.getAddress().getPort();
        var client = HttpClient.newHttpClient();
        var post = HttpRequest.newBuilder(URI.create(base + "/echo")).POST(HttpRequest.BodyPublishers.ofString("grüß dich")).build();
        var answer = client.send(post, HttpResponse.BodyHandlers.ofString());
        System.out.println(answer.statusCode() + " " + answer.body());
        var missing = HttpRequest.newBuilder(URI.create(base + "/nothing")).build();
        System.out.println(client.send(missing, HttpResponse.BodyHandlers.discarding()).statusCode());
        web.stop(0);

        try (var listener = new ServerSocket(0, 5, InetAddress.getLoopbackAddress())) {
            var server = new Thread(() -> {
                try (var peer = listener.accept();
                     var in = new BufferedReader(new InputStreamReader(peer.getInputStream(), StandardCharsets.UTF_8));
                     var out = new PrintWriter(peer.getOutputStream(), true, StandardCharsets.UTF_8)) {
                    in.lines().map(line -> new StringBuilder(line).reverse().toString()).forEach(out::println);
                } catch (IOException broken) {
                    System.out.println(broken);
                }
            });
            server.start();
            try (var peer = new Socket(listener.getInetAddress(), listener.getLocalPort())) {
                peer.getOutputStream().write("stressed\nlevel\n".getBytes(StandardCharsets.UTF_8));
                peer.shutdownOutput();
                System.out.print(new String(peer.getInputStream().readAllBytes(), StandardCharsets.UTF_8));
            }
            server.join();
        }
        try (var receiver = new DatagramSocket(0, InetAddress.getLoopbackAddress()); var sender = new DatagramSocket()) {
            var data = "datagram".getBytes(StandardCharsets.UTF_8);
            sender.send(new DatagramPacket(data, data.length, receiver.getLocalSocketAddress()));
            var packet = new DatagramPacket(new byte[64], 64);
            receiver.receive(packet);
            System.out.println(new String(packet.getData(), 0, packet.getLength(), StandardCharsets.UTF_8));
        }
        try {
            new Socket(InetAddress.getLoopbackAddress(), 1).close();
        } catch (ConnectException refused) {
            System.out.println(refused.getMessage());
        }
    }
}
