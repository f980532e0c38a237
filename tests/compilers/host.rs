//! What an attack is after, planted on the host outside of every sandbox.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sandbox::{ExecutionId, Report, RequestBuilder};
use tempfile::TempDir;

/// A secret that every user of the host may read, and a server that every process of it may call.
pub(crate) struct Host {
    directory: TempDir,
    secret: String,
    server: TcpListener,
}

impl Host {
    /// Plants them. Not below `/tmp`, where every sandbox has something of its own: there the secret
    /// would be hidden even without any protection.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        // The id of an execution is unique, and an identifier in every language.
        let secret = ExecutionId::generate().to_string();
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        let module = directory.path().join("module");
        std::fs::create_dir(&module).unwrap();
        for (path, text) in [
            (directory.path().join("canary"), format!("{secret}\n")),
            (
                directory.path().join("canary.d.ts"),
                format!("declare const secret: \"{secret}\";\nexport default secret;\n"),
            ),
            (module.join("go.mod"), "module example.com/stolen\n\ngo 1.21\n".to_owned()),
            (module.join("stolen.go"), format!("package stolen\n\nconst Secret = \"{secret}\"\n")),
        ] {
            std::fs::write(&path, text).unwrap();
            open(&path, 0o644);
        }
        open(&module, 0o755);
        open(directory.path(), 0o755);
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        Self { directory, secret, server }
    }

    /// The directory with the secret.
    pub(crate) fn place(&self) -> &Path {
        self.directory.path()
    }

    /// Puts the places of this host into a source where it names them.
    fn fill(&self, source: &str) -> String {
        let path = |name| self.directory.path().join(name).display().to_string();
        let port = self.server.local_addr().unwrap().port().to_string();
        source
            .replace("CANARY", &path("canary"))
            .replace("MODULE", &path("module"))
            .replace("PORT", &port)
    }

    /// The text of a hostile source that is after this host.
    pub(crate) fn source(&self, source: &str) -> String {
        self.fill(&std::fs::read_to_string(hostile(source)).unwrap())
    }

    /// Adds a hostile source to a request: a file, or all files of a project.
    pub(crate) fn add(&self, request: RequestBuilder, source: &str) -> RequestBuilder {
        let place = hostile(source);
        if place.is_file() {
            return request.code(self.source(source));
        }
        let mut paths = Vec::new();
        collect(&place, &mut paths);
        // A request's first file is its entry point.
        let is_entry =
            |path: &PathBuf| path.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case("main"));
        paths.sort_by_key(|path| !is_entry(path));
        paths.iter().fold(request, |request, path| {
            let name = path.strip_prefix(&place).unwrap().to_str().unwrap();
            request.file(name, self.fill(&std::fs::read_to_string(path).unwrap()))
        })
    }

    /// Whether the secret is anywhere in a report, as it would be written for its reader.
    pub(crate) fn is_told_by(&self, report: &Report) -> bool {
        let json = serde_json::to_string(report).unwrap();
        json.contains(&self.secret)
    }

    /// Whether the server got a connection.
    pub(crate) fn was_called(&self) -> bool {
        match self.server.accept() {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("the server does not work: {error}"),
        }
    }
}

/// Where a hostile source is.
fn hostile(source: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("compilers/hostile").join(source)
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { collect(&path, paths) } else { paths.push(path) }
    }
}
