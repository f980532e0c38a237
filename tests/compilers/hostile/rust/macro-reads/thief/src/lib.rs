// A procedural macro is a library that the compiler loads into its own process: it can do everything
// that the compiler can. It reads files of the host, connects to a server of the host, and starts a
// process that outlives the compiler. CANARY and PORT are replaced.
use proc_macro::TokenStream;
use std::process::{Command, Stdio};

#[proc_macro]
pub fn loot(_: TokenStream) -> TokenStream {
    // It holds no pipe, so that nobody waits for its end.
    let mut sleeper = Command::new("setsid");
    sleeper.args(["sleep", "1000"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = sleeper.spawn();
    let mut loot = String::new();
    for path in ["CANARY", "/etc/shadow", "/proc/1/environ"] {
        let found = std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        loot += &format!("{path}: {found:?}\n");
    }
    let connected = std::net::TcpStream::connect("127.0.0.1:PORT").is_ok();
    loot += &format!("connected: {connected}\n");
    format!("{loot:?}").parse().unwrap()
}
