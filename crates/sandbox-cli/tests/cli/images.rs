//! Images from the command line.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use assert_cmd::Command;
use sandbox_images::Digest;
use serde_json::{Value, json};

use crate::support::{BINARY, CommandOutput, TIMEOUT};

fn call(place: &Path, args: &[&str]) -> CommandOutput {
    let mut command = Command::new(BINARY);
    command.env("SANDBOX_RUN_IMAGES", place.join("images")).arg("images");
    command.args(args).timeout(TIMEOUT).output().unwrap().into()
}

fn hash(bytes: &[u8]) -> String {
    Digest::of(bytes).digits().to_owned()
}

fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        builder.append_data(&mut header, path, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn config(layer: &[u8], variable: &str) -> Vec<u8> {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let config: Value = json!({
        "os": "linux", "architecture": architecture,
        "config": { "Env": ["PATH=/bin", variable], "Cmd": ["sh", "-l"] },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", hash(layer))] },
    });
    serde_json::to_vec(&config).unwrap()
}

/// An archive as `docker save` writes it.
fn saved(place: &Path, name: &str, layer: &[u8], variable: &str) -> String {
    let config = config(layer, variable);
    let config_path = format!("{}.json", hash(&config));
    let list = json!([{ "Config": config_path, "RepoTags": [name], "Layers": ["l/layer.tar"] }]);
    let list = serde_json::to_vec(&list).unwrap();
    let path = place.join("saved.tar");
    let archive = tar(&[("l/layer.tar", layer), (&config_path, &config), ("manifest.json", &list)]);
    fs::write(&path, archive).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_image_is_imported_listed_shown_removed_and_pruned() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let none = call(place, &["list"]);
    assert!(none.stdout.contains("no images: "), "{none:?}");
    let layer = tar(&[("bin/tool", b"#!/bin/sh\n")]);
    let archive = saved(place, "tool:1", &layer, "A=1");
    let imported = call(place, &["import", &archive]);
    assert_eq!((imported.code, imported.stderr.as_str()), (Some(0), ""), "{imported:?}");
    assert!(imported.stdout.starts_with("imported tool:1 (sha256:"), "{imported:?}");
    let list = call(place, &["list"]);
    assert!(list.stdout.contains("IMAGE") && list.stdout.contains("tool:1"), "{list:?}");
    let json = call(place, &["list", "--json"]).json();
    assert_eq!((&json[0]["reference"], &json[0]["layers"]), (&"tool:1".into(), &1.into()));
    let shown = call(place, &["show", "docker.io/library/tool:1"]);
    for part in ["image        tool:1", "environment  PATH=/bin", "command      sh -l", "root  "] {
        assert!(shown.stdout.contains(part), "no {part:?} in {shown:?}");
    }
    let json = call(place, &["show", "tool:1", "--json"]).json();
    assert_eq!(json["config"]["command"], json!(["sh", "-l"]));
    let root = Path::new(json["root"].as_str().unwrap()).to_owned();
    assert_eq!(fs::read_to_string(root.join("bin/tool")).unwrap(), "#!/bin/sh\n");
    let removed = call(place, &["remove", "tool:1"]);
    assert_eq!((removed.code, removed.stdout.as_str()), (Some(0), ""));
    assert!(root.exists());
    let pruned = call(place, &["prune"]);
    assert!(pruned.stdout.starts_with("removed 1 unpacked images and 3 blobs"), "{pruned:?}");
    assert!(!root.exists());
    for action in ["show", "remove"] {
        call(place, &[action, "tool:1"]).is_refused_with(&["image 'tool:1' not found"]);
    }
}

#[test]
fn a_name_can_be_given_and_quiet_is_quiet() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let archive = saved(place, "tool:1", &tar(&[("a", b"")]), "A=1");
    let imported = call(place, &["import", &archive, "--name", "ghcr.io/ada/tool:2", "--quiet"]);
    assert_eq!((imported.code, imported.stdout.as_str()), (Some(0), ""), "{imported:?}");
    let json = call(place, &["list", "--json"]).json();
    assert_eq!(json[0]["reference"], "ghcr.io/ada/tool:2");
    assert_eq!(json.as_array().unwrap().len(), 1);
}

/// A registry that gives away what is in this table, by the last part of the path.
fn registry(table: HashMap<String, Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let request: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let path = request.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
            let found = path.rsplit('/').next().and_then(|last| table.get(last));
            let (status, body) = found.map_or(("404 Not Found", &b""[..]), |body| ("200 OK", body));
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all(body);
        }
    });
    address
}

#[test]
fn an_image_is_pulled() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let layer = tar(&[("bin/tool", b"#!/bin/sh\n")]);
    let config = config(&layer, "A=1");
    let describe = |kind: &str, content: &[u8]| json!({ "mediaType": kind, "digest": Digest::of(content).to_string(), "size": content.len() });
    let manifest = json!({
        "schemaVersion": 2,
        "config": describe("application/vnd.oci.image.config.v1+json", &config),
        "layers": [describe("application/vnd.oci.image.layer.v1.tar", &layer)],
    });
    let manifest = serde_json::to_vec(&manifest).unwrap();
    let name = |content: &[u8]| Digest::of(content).to_string();
    let table = [(name(&config), config.clone()), (name(&layer), layer.clone())];
    let mut table = HashMap::from(table);
    table.insert("1.0".to_owned(), manifest.clone());
    let address = registry(table);
    let reference = format!("{address}/ada/tool:1.0");
    let pulled = call(place, &["pull", &reference]);
    assert_eq!((pulled.code, pulled.stderr.as_str()), (Some(0), ""), "{pulled:?}");
    let wanted = format!("pulled {reference} ({}), ", Digest::of(&manifest));
    assert!(pulled.stdout.starts_with(&wanted), "{pulled:?}");
    let shown = call(place, &["show", &reference, "--json"]).json();
    let root = Path::new(shown["root"].as_str().unwrap());
    assert_eq!(fs::read_to_string(root.join("bin/tool")).unwrap(), "#!/bin/sh\n");
    let again = call(place, &["pull", &reference, "--quiet"]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""), "{again:?}");
    call(place, &["pull", &format!("{address}/ada/tool:2.0")])
        .is_refused_with(&["does not have the image"]);
}

#[test]
fn bad_requests_are_one_line() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    call(place, &["pull", "../x"]).is_refused_with(&["invalid image name '../x'"]);
    call(place, &["pull"]).is_refused_with(&["REF"]);
    call(place, &["show", "x y"]).is_refused_with(&["invalid image name"]);
    call(place, &["import", "/nonexistent"]).is_refused_with(&["cannot read '/nonexistent'"]);
    let archive = saved(place, "tool:1", &tar(&[("a", b"")]), "A=1");
    call(place, &["import", &archive, "--name", "x@sha256:1"]).is_refused_with(&["a digest"]);
    fs::write(place.join("garbage"), "x".repeat(5000)).unwrap();
    let garbage = place.join("garbage");
    call(place, &["import", garbage.to_str().unwrap()]).is_refused_with(&[
        "cannot use image",
        "garbage'",
        "cannot read the archive",
    ]);
    // Nobody listens there.
    call(place, &["pull", "127.0.0.1:1/x"])
        .is_refused_with(&["cannot use image '127.0.0.1:1/x:latest'", "cannot be reached"]);
    assert_eq!(call(place, &["list", "--json"]).json(), json!([]));
}

#[test]
fn hostile_images_are_refused_and_leave_nothing() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    builder.append_link(&mut header, "out", place).unwrap();
    let mut header = tar::Header::new_ustar();
    header.set_size(4);
    builder.append_data(&mut header, "out/file", &b"dead"[..]).unwrap();
    let archive = saved(place, "tool:1", &builder.into_inner().unwrap(), "A=1");
    call(place, &["import", &archive]).is_refused_with(&[
        "layer 1 (sha256:",
        "'out/file' is below a link whose target is not in the image",
    ]);
    assert!(!place.join("file").exists());
    assert_eq!(fs::read_dir(place.join("images/roots")).unwrap().count(), 0);
}

#[test]
fn what_an_image_says_cannot_drive_the_terminal() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let archive = saved(place, "tool:1", &tar(&[("a", b"")]), "A=\u{1b}[2Jx\nroot /");
    call(place, &["import", &archive]);
    let shown = call(place, &["show", "tool:1"]).stdout;
    assert!(!shown.contains('\u{1b}') && shown.contains("A=\\u{1b}[2Jx root /"), "{shown}");
}

#[test]
fn a_place_that_depends_on_the_directory_is_refused() {
    let mut command = Command::new(BINARY);
    let output = command.env("SANDBOX_RUN_IMAGES", "images").args(["images", "list"]).output();
    CommandOutput::from(output.unwrap())
        .is_refused_with(&["SANDBOX_RUN_IMAGES", "'images' is not an absolute"]);
}
