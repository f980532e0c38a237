//! The counterpart of the attacks: a naive unpacker modifies the canary with the same images.

use std::fs;
use std::io::Read;
use std::path::Path;

use super::escapes::escapes;
use crate::harness::Harness;

/// Unpacks a layer without any checks.
fn unpack(layer: &[u8], root: &Path) {
    let mut archive = tar::Archive::new(layer);
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        // Joining an absolute path gives that path, and `..` leads up.
        let path = root.join(entry.path().unwrap());
        let target = entry.link_name().unwrap().map(|target| root.join(target));
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        if let Some(hidden) = name.as_deref().and_then(|name| name.strip_prefix(".wh.")) {
            let directory = path.parent().unwrap();
            if hidden == ".wh..opq" {
                let _ = fs::remove_dir_all(directory.join("directory"));
            } else if hidden != ".." {
                let _ = fs::remove_file(directory.join(hidden));
            }
            continue;
        }
        match entry.header().entry_type() {
            tar::EntryType::Directory => drop(fs::create_dir_all(&path)),
            tar::EntryType::Symlink => {
                let _ = std::os::unix::fs::symlink(entry.link_name().unwrap().unwrap(), &path);
            }
            tar::EntryType::Link => drop(fs::hard_link(target.unwrap(), &path)),
            _ => {
                let mut content = Vec::new();
                entry.read_to_end(&mut content).unwrap();
                drop(fs::write(&path, content));
            }
        }
    }
}

/// The layers of an archive, in order.
fn layers(archive: &[u8]) -> Vec<Vec<u8>> {
    let mut files = std::collections::BTreeMap::new();
    for entry in tar::Archive::new(archive).entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        files.insert(entry.path().unwrap().to_string_lossy().into_owned(), content);
    }
    let read = |path: &str| serde_json::from_slice::<serde_json::Value>(&files[path]).unwrap();
    let blob = |digest: &serde_json::Value| {
        format!("blobs/sha256/{}", digest.as_str().unwrap().trim_start_matches("sha256:"))
    };
    let manifest = read(&blob(&read("index.json")["manifests"][0]["digest"]));
    let layers = manifest["layers"].as_array().unwrap().iter();
    layers.map(|layer| files[&blob(&layer["digest"])].clone()).collect()
}

#[test]
fn a_naive_unpacker_modifies_the_canary() {
    let names: Vec<&str> = escapes(&Harness::new()).iter().map(|attack| attack.name).collect();
    let mut harmless = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let harness = Harness::new();
        let attack = escapes(&harness).swap_remove(number);
        let root = harness.path().join("root");
        fs::create_dir(&root).unwrap();
        for layer in layers(&attack.archive) {
            unpack(&layer, &root);
        }
        if harness.canary_is_unharmed() {
            harmless.push(*name);
        }
    }
    // These need an unpacker with other mistakes than this one.
    let expected = [
        "directory replaced by a symlink out in the next layer, then written through",
        "hard link to a symlink out",
        "whiteout of ..",
        "whiteout of a symlink out",
        "file in place of a symlink to a file outside",
    ];
    assert_eq!(harmless, expected);
}
