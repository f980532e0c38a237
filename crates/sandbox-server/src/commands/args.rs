use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use sandbox_store::{Permission, Scope};

use crate::config::Layer;

/// Runs code that nobody trusts, for clients that ask over HTTP.
///
/// Without a command it serves until it is asked to stop by SIGTERM or Ctrl-C. What it keeps (executions,
/// keys) lies in one directory, and no other service is needed.
#[derive(Debug, Parser)]
#[command(name = "sandboxd", version, after_help = AFTER_HELP, disable_help_subcommand = true)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) settings: SettingFlags,
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

const AFTER_HELP: &str = "\
Try it:
  sandboxd &
  curl http://127.0.0.1:8080/api/v1/execute \\
       -H 'Content-Type: application/json' \\
       -d '{\"language\": \"python\", \"code\": \"print(6 * 7)\"}'
  and http://127.0.0.1:8080/docs in a browser, for all the rest.

For other machines:
  sandboxd keys create --name my-team     prints a key, once
  sandboxd --listen 0.0.0.0:8080          clients send 'Authorization: Bearer KEY'
  Where the network is not your own, set tls_cert and tls_key to a certificate and its key
  (PEM), or put a proxy that speaks TLS before it. SIGHUP reads both files again.

Settings come from sandboxd.toml (here, then ~/.config/sandboxd, then /etc/sandboxd), from
variables such as SANDBOXD_LISTEN, and from flags; the later wins. Flags are for what
differs from one start to the next, the file has more: 'sandboxd config check' prints every
setting, its value, and where that came from.";

/// Flags that set what a file or a variable could set too.
#[derive(Debug, Args)]
pub(super) struct SettingFlags {
    /// Where to listen; other machines can reach it only if there are API keys [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT", global = true)]
    listen: Option<String>,
    /// Where executions and keys are kept [default: ~/.local/state/sandboxd]
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<String>,
    /// The configuration file
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Which part of the work this process does; this build has 'all' [default: all]
    #[arg(long, value_name = "ROLE", global = true)]
    role: Option<String>,
    /// 'embedded', which is a file in the data directory, or 'sqlite:/another/file' [default: embedded]
    #[arg(long, value_name = "URL", global = true)]
    database: Option<String>,
    /// Where executions wait for their turn; this build has 'embedded' [default: embedded]
    #[arg(long, value_name = "URL", global = true)]
    queue: Option<String>,
}

impl SettingFlags {
    pub(super) fn layer(&self) -> Layer {
        Layer::of_flags([
            ("listen", "--listen", self.listen.as_ref()),
            ("data_dir", "--data-dir", self.data_dir.as_ref()),
            ("role", "--role", self.role.as_ref()),
            ("database", "--database", self.database.as_ref()),
            ("queue", "--queue", self.queue.as_ref()),
        ])
    }

    pub(super) fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make, list and revoke the keys of clients; a running server hears of it within a second or two
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Look at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print who did what: executions, cancellations, and keys made and revoked, the newest first
    Audit {
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        /// One JSON object a line instead of columns
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Make a key and print it: the only time that it can be seen
    Create {
        /// What it is for, for people
        #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
        name: String,
        /// What it may be used for; may be repeated
        #[arg(long = "scope", value_name = "SCOPE", default_value = "execute")]
        scopes: Vec<ScopeArg>,
        /// Features that its requests may use, beside those of the setting key_permissions
        #[arg(long = "allow", value_name = "PERMISSION,…", value_delimiter = ',')]
        permissions: Vec<PermissionArg>,
    },
    /// Grant permissions to a key, beside those it has
    Allow(PermissionArgs),
    /// Withdraw permissions from a key; executions it has queued keep what they were accepted with
    Deny(PermissionArgs),
    /// List the keys; the keys themselves are not kept and cannot be shown
    List,
    /// Print the secret that callbacks are signed with, for their receiver; it is not the key itself
    ///
    /// A request with a callback_url has its report sent there, signed as Standard Webhooks has it. Each key
    /// has a secret of its own, with which its callbacks are signed.
    CallbackSecret {
        /// The key's id, as `keys list` prints it; none for clients without a key
        #[arg(value_name = "KEY-ID")]
        id: Option<String>,
    },
    /// Take a key back, at once and for good
    Revoke {
        /// Its id, as `keys list` prints it
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Read the whole configuration, say what is wrong with it, or print each value and its origin
    Check,
}

/// A scope as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ScopeArg {
    /// Run code, and read what came of one's own
    Execute,
    /// Read what came of one's own
    Read,
    /// Everything, of everyone
    Admin,
}

impl From<ScopeArg> for Scope {
    fn from(scope: ScopeArg) -> Self {
        match scope {
            ScopeArg::Execute => Self::Execute,
            ScopeArg::Read => Self::Read,
            ScopeArg::Admin => Self::Admin,
        }
    }
}

/// Which permissions of which key.
#[derive(Debug, Args)]
pub(super) struct PermissionArgs {
    /// The key's id, as `keys list` prints it
    pub(super) id: String,
    /// The permissions
    #[arg(value_name = "PERMISSION,…", value_delimiter = ',', required = true)]
    pub(super) permissions: Vec<PermissionArg>,
}

/// A permission as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum PermissionArg {
    /// Name protections that an execution may do without
    AllowMissing,
    /// Reach addresses outside the sandbox with the network mode allowlist
    Network,
    /// Have packages fetched and environments built
    Packages,
}

impl From<PermissionArg> for Permission {
    fn from(permission: PermissionArg) -> Self {
        match permission {
            PermissionArg::AllowMissing => Self::AllowMissing,
            PermissionArg::Network => Self::Network,
            PermissionArg::Packages => Self::Packages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_may_stand_before_or_behind_a_command() {
        for line in ["sandboxd --data-dir /d keys list", "sandboxd keys list --data-dir /d"] {
            let cli = Cli::try_parse_from(line.split(' ')).expect("it is right");
            assert_eq!(cli.settings.data_dir.as_deref(), Some("/d"), "{line}");
        }
    }

    #[test]
    fn scopes_add_up_and_running_code_is_the_default() {
        let scopes = |line: &str| match Cli::try_parse_from(line.split(' ')).unwrap().command {
            Some(Command::Keys(KeysCommand::Create { scopes, .. })) => scopes,
            other => panic!("{other:?}"),
        };
        assert_eq!(scopes("sandboxd keys create --name n"), [ScopeArg::Execute]);
        assert_eq!(
            scopes("sandboxd keys create --name n --scope read --scope admin"),
            [ScopeArg::Read, ScopeArg::Admin]
        );
    }
}
