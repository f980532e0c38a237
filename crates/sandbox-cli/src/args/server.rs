//! Options that name a server, for `run` and `runtimes`.

use std::collections::VecDeque;
use std::ffi::OsString;

use clap::Args;
use sandbox_client::{ApiKey, ServerUrl};

const SERVER: &str = "Server";

/// The server that runs the command instead of this host.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServerArgs {
    /// Run on a sandboxd server, such as http://127.0.0.1:8080 [default: this host]
    ///
    /// With https:// this machine must trust the server's certificate; SSL_CERT_FILE names another file of trusted
    /// certificates. With http:// anyone on the network path can read the key and the code. With unix:/PATH it connects
    /// to the Unix socket of a sandboxd of your own (`sandboxd --socket PATH`), which needs no key.
    #[arg(long, value_name = "URL", help_heading = SERVER, env = "SANDBOX_RUN_SERVER")]
    pub(crate) server: Option<ServerUrl>,

    /// Set the API key of the server; prefer the environment variable [default: none]
    #[arg(long, value_name = "KEY", help_heading = SERVER, env = "SANDBOX_RUN_API_KEY",
          hide_env_values = true)]
    pub(crate) api_key: Option<ApiKey>,
}

/// Commands that `--server URL` may precede as well as follow.
const COMMANDS: [&str; 6] = ["run", "runtimes", "doctor", "env", "cache", "completions"];

/// Moves --server and --api-key from before the command to after it, where clap expects them.
pub(crate) fn move_server_after_command(line: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut rest: VecDeque<OsString> = line.into_iter().collect();
    let mut line: Vec<OsString> = rest.pop_front().into_iter().collect();
    let mut server = Vec::new();
    while let Some(word) = rest.front().and_then(|word| word.to_str()) {
        let words = match word {
            "--server" | "--api-key" => 2,
            _ if word.starts_with("--server=") || word.starts_with("--api-key=") => 1,
            _ => break,
        };
        server.extend(rest.drain(..words.min(rest.len())));
    }
    let is_command = |word: &OsString| COMMANDS.iter().any(|command| word == command);
    if rest.front().is_some_and(is_command) {
        line.extend(rest.pop_front());
    }
    line.extend(server);
    line.extend(rest);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(line: &[&str]) -> Vec<String> {
        let moved = move_server_after_command(line.iter().map(OsString::from));
        moved.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn a_server_before_the_command_moves_after_it() {
        let line = ["sandbox-run", "--server", "URL", "--api-key=K", "runtimes", "--json"];
        let behind = ["sandbox-run", "runtimes", "--server", "URL", "--api-key=K", "--json"];
        assert_eq!(moved(&line), behind);
    }

    #[test]
    fn other_lines_are_unchanged() {
        for line in [
            &["sandbox-run"][..],
            &["sandbox-run", "--server"],
            &["sandbox-run", "--server", "URL", "./runtimes"],
            &["sandbox-run", "runtimes", "--server", "URL"],
            &["sandbox-run", "-l", "py", "--server", "URL", "runtimes"],
            &["sandbox-run", "a.py", "--", "--server", "URL", "run"],
        ] {
            assert_eq!(moved(line), line);
        }
    }
}
