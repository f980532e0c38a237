// A web server with its client, datagrams, and a Unix socket.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	routes := http.NewServeMux()
	routes.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		check(json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "body": string(body), "n": len(body)}))
	})
	server := httptest.NewServer(routes)
	answer, err := http.Post(server.URL+"/echo", "text/plain", strings.NewReader("grüß dich"))
	check(err)
	body, _ := io.ReadAll(answer.Body)
	fmt.Print(answer.StatusCode, " ", string(body))
	missing, err := http.Get(server.URL + "/nothing")
	check(err)
	fmt.Println(missing.Status)
	server.Close()

	receiver, err := net.ListenPacket("udp", "127.0.0.1:0")
	check(err)
	sender, err := net.Dial("udp", receiver.LocalAddr().String())
	check(err)
	fmt.Fprint(sender, "datagram")
	buffer := make([]byte, 64)
	size, _, err := receiver.ReadFrom(buffer)
	check(err)
	fmt.Println(string(buffer[:size]))

	path := filepath.Join(os.TempDir(), "corpus.sock")
	listener, err := net.Listen("unix", path)
	check(err)
	go func() {
		peer, _ := listener.Accept()
		line, _ := bufio.NewReader(peer).ReadString('\n')
		fmt.Fprintf(peer, "got %q", line)
		peer.Close()
	}()
	client, err := net.Dial("unix", path)
	check(err)
	fmt.Fprintln(client, "over a file")
	reply, _ := io.ReadAll(client)
	fmt.Println(string(reply))
	check(listener.Close())
	_, err = net.Dial("tcp", "127.0.0.1:1")
	fmt.Println(strings.HasSuffix(err.Error(), "connection refused"))
}
