use std::collections::VecDeque;
use std::ffi::OsString;

use clap::Args;

use crate::remote::{ApiKey, ServerUrl};

const SERVER: &str = "Server";

/// Where the work is done, if not here.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServerArgs {
    /// Let a sandboxd do it: its address, such as http://127.0.0.1:8080 [default: done here]
    ///
    /// With https:// its certificate must be one that this machine trusts; SSL_CERT_FILE names another
    /// file of authorities to trust. Without, whoever is on the way reads the key and the code.
    #[arg(long, value_name = "URL", help_heading = SERVER, env = "SANDBOX_RUN_SERVER")]
    pub(crate) server: Option<ServerUrl>,

    /// The key that the server wants; better set in the environment than typed [default: none]
    #[arg(long, value_name = "KEY", help_heading = SERVER, env = "SANDBOX_RUN_API_KEY",
          hide_env_values = true)]
    pub(crate) api_key: Option<ApiKey>,
}

/// Commands that go after `--server URL` as well as before it.
const COMMANDS: [&str; 6] = ["run", "runtimes", "doctor", "env", "cache", "completions"];

/// Moves a server that is named before the command behind it, where every other option stands.
pub(crate) fn server_behind_command(line: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
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
        let moved = server_behind_command(line.iter().map(OsString::from));
        moved.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn a_server_before_the_command_is_a_server_behind_it() {
        let line = ["sandbox-run", "--server", "URL", "--api-key=K", "runtimes", "--json"];
        let behind = ["sandbox-run", "runtimes", "--server", "URL", "--api-key=K", "--json"];
        assert_eq!(moved(&line), behind);
    }

    #[test]
    fn other_lines_stay_as_they_are() {
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
