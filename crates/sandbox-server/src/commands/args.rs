use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use sandbox_store::{Permission, Scope};

use crate::config::Layer;

/// Runs untrusted code in sandboxes, over HTTP.
///
/// Without a command, serves until SIGTERM or Ctrl-C. Keeps executions and keys in one directory; requires no other
/// service.
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
  The API reference is at http://127.0.0.1:8080/docs.

Serve other machines:
  sandboxd keys create --name my-team     prints a key, once
  sandboxd --listen 0.0.0.0:8080          clients send 'Authorization: Bearer KEY'
  On an untrusted network, set tls_cert and tls_key to a certificate and its key (PEM), or
  use a TLS proxy. SIGHUP reloads both files.

Settings come from sandboxd.toml (here, then ~/.config/sandboxd, then /etc/sandboxd), from
variables such as SANDBOXD_LISTEN, and from flags, in order of rising precedence. The file
and variables have all settings: 'sandboxd config check' prints each one with its value and
its source.";

/// Flags for settings that the file and variables can set too.
#[derive(Debug, Args)]
pub(super) struct SettingFlags {
    /// Address to listen on; an address other than loopback requires API keys [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT", global = true)]
    listen: Option<String>,
    /// Unix socket to listen on too, for processes of this user, without keys; with '--listen off', only there
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<String>,
    /// Stop after this time without clients and executions, such as 10m [default: off]
    #[arg(long, value_name = "DURATION", global = true)]
    idle_exit: Option<String>,
    /// Directory of executions and keys [default: ~/.local/state/sandboxd]
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<String>,
    /// Configuration file
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Role of this process; this build supports 'all' [default: all]
    #[arg(long, value_name = "ROLE", global = true)]
    role: Option<String>,
    /// Database: 'embedded', a file in the data directory, or 'sqlite:/absolute/path' [default: embedded]
    #[arg(long, value_name = "URL", global = true)]
    database: Option<String>,
    /// Queue of executions; this build supports 'embedded' [default: embedded]
    #[arg(long, value_name = "URL", global = true)]
    queue: Option<String>,
}

impl SettingFlags {
    pub(super) fn layer(&self) -> Layer {
        Layer::of_flags([
            ("listen", "--listen", self.listen.as_ref()),
            ("socket", "--socket", self.socket.as_ref()),
            ("idle_exit", "--idle-exit", self.idle_exit.as_ref()),
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
    /// Manage API keys; a running server applies changes within two seconds
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Check the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the audit log, newest first: executions, cancellations, changes of keys
    Audit {
        /// Maximum number of entries
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        /// Print one JSON object for each line instead of columns
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Create a key and print it; it cannot be printed again
    Create {
        /// Name of the key, for humans
        #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
        name: String,
        /// Scope of the key; repeatable
        #[arg(long = "scope", value_name = "SCOPE", default_value = "execute")]
        scopes: Vec<ScopeArg>,
        /// Permissions of the key, besides those of the setting key_permissions
        #[arg(long = "allow", value_name = "PERMISSION,…", value_delimiter = ',')]
        permissions: Vec<PermissionArg>,
    },
    /// Grant permissions to a key
    Allow(PermissionArgs),
    /// Withdraw permissions from a key; queued executions keep them
    Deny(PermissionArgs),
    /// List keys, without their secrets
    List,
    /// Print the secret with which a receiver verifies callbacks
    ///
    /// The server sends the report of a request with a callback_url to that URL, signed according to Standard
    /// Webhooks. Each key has a separate secret, which is not the key itself.
    CallbackSecret {
        /// Id of the key, as `keys list` prints it; omit it for clients without a key
        #[arg(value_name = "KEY-ID")]
        id: Option<String>,
    },
    /// Revoke a key, permanently
    Revoke {
        /// Id of the key, as `keys list` prints it
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Validate the configuration, and print each value with its source
    Check,
}

/// A scope, as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ScopeArg {
    /// Run code, and read the client's own reports
    Execute,
    /// Read the client's own reports
    Read,
    /// Everything, for all clients
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

/// A key and permissions.
#[derive(Debug, Args)]
pub(super) struct PermissionArgs {
    /// Id of the key, as `keys list` prints it
    pub(super) id: String,
    /// Permissions
    #[arg(value_name = "PERMISSION,…", value_delimiter = ',', required = true)]
    pub(super) permissions: Vec<PermissionArg>,
}

/// A permission, as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum PermissionArg {
    /// Permit missing protections
    AllowMissing,
    /// Use the network mode allowlist
    Network,
    /// Install packages and build environments
    Packages,
    /// Mount directories of the host that the setting volumes_from names
    Volumes,
}

impl From<PermissionArg> for Permission {
    fn from(permission: PermissionArg) -> Self {
        match permission {
            PermissionArg::AllowMissing => Self::AllowMissing,
            PermissionArg::Network => Self::Network,
            PermissionArg::Packages => Self::Packages,
            PermissionArg::Volumes => Self::Volumes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_are_accepted_before_and_after_a_command() {
        for line in ["sandboxd --data-dir /d keys list", "sandboxd keys list --data-dir /d"] {
            let cli = Cli::try_parse_from(line.split(' ')).expect("the values are valid");
            assert_eq!(cli.settings.data_dir.as_deref(), Some("/d"), "{line}");
        }
    }

    #[test]
    fn scopes_are_repeatable_and_default_to_execute() {
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
