"""An asyncio server and three clients over TCP, a datagram, and a socket pair."""

import asyncio
import socket


async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(line.decode().upper().encode())
        await writer.drain()
    writer.close()


async def ask(port, words):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answers = []
    for word in words:
        writer.write(f"{word}\n".encode())
        answers.append((await reader.readline()).decode().strip())
    writer.close()
    await writer.wait_closed()
    return answers


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(await asyncio.gather(ask(port, ["one", "two"]), ask(port, ["grün"]), ask(port, ["x"] * 3)))
    server.close()
    await server.wait_closed()


asyncio.run(main())

receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("127.0.0.1", 0))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.sendto(b"datagram", receiver.getsockname())
print(receiver.recvfrom(64)[0])

left, right = socket.socketpair()
left.sendall(b"pair")
print(right.recv(4))
try:
    socket.create_connection(("127.0.0.1", 1), timeout=5)
except ConnectionRefusedError:
    print("nobody listens there")
