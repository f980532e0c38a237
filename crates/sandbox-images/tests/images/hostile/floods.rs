use super::{Attack, check_all, limits, rejected};
use crate::archives::{Files, bytes, config, gzip, image};
use crate::harness::Harness;
use crate::tar_writer::{FILE, GNU_NAME, Head, SPARSE, Tar};

fn one(layer: Tar) -> Vec<u8> {
    image("x:1", &[layer.end()])
}

/// An image with one compressed layer.
fn compressed(layer: Vec<u8>) -> Vec<u8> {
    let sent = gzip(&layer);
    Files::layout("x:1", &config(&[layer]), &[sent]).tar()
}

/// Ten nested directories.
fn ten(name: &str) -> String {
    [name; 10].join("/")
}

#[expect(clippy::too_many_lines, reason = "a flat table of independent rows")]
fn floods(_: &Harness) -> Vec<Attack> {
    let limits = limits();
    let half = vec![0; usize::try_from(limits.file_bytes).unwrap() - 512];
    let many =
        (0..=limits.entries).fold(Tar::new(), |tar, number| tar.file(format!("f{number}"), ""));
    let many_times = (0..=limits.entries).fold(Tar::new(), |tar, _| tar.directory("same/"));
    let three = |tar: Tar| tar.file("a", &half).file("b", &half).file("c", &half);
    let mut trailing = Tar::new().file("a", "").end();
    trailing.resize(2 << 20, 0);
    let long = "d/".repeat(600);
    let links = Tar::new()
        .directory(ten("a"))
        .symlink("b", ten("a"))
        .directory(format!("b/{}", ten("b")))
        .symlink("c", format!("b/{}", ten("b")))
        .directory("c/over");
    let layers: Vec<Vec<u8>> = (0..9).map(|n| Tar::new().file(format!("{n}"), "").end()).collect();
    let mut padded = config(&[Tar::new().end()]);
    padded["comment"] = "x".repeat(70_000).into();
    let files = (0..150).fold(Files::default(), |files, n| files.with(&format!("f{n}"), *b""));
    vec![
        rejected(
            "file with a huge declared size",
            one(Tar::new().entry(Head::new(FILE, b"huge", 1 << 32), b"")),
            "is larger than 524288 bytes",
        ),
        rejected(
            "more bytes than an image may have",
            one(three(Tar::new())),
            "more than 1572864 bytes",
        ),
        rejected(
            "decompression bomb",
            compressed(three(Tar::new()).end()),
            "more than 1572864 bytes",
        ),
        rejected(
            "bytes behind the end of the archive",
            compressed(trailing),
            "more than 1572864 bytes",
        ),
        rejected(
            "bytes in several layers",
            {
                let layer = |name| Tar::new().file(name, &half).end();
                let layers = [layer("a"), layer("b"), layer("c")];
                let sent: Vec<Vec<u8>> = layers.iter().map(|layer| gzip(layer)).collect();
                Files::layout("x:1", &config(&layers), &sent).tar()
            },
            "layer 3",
        ),
        rejected("too many files", compressed(many.end()), "more than 1000 files"),
        rejected(
            "too many entries with the same name",
            compressed(many_times.end()),
            "more than 1000 files",
        ),
        rejected(
            "sparse file of GNU",
            one(Tar::new().entry(Head::new(SPARSE, b"s", 0), b"")),
            "sparse",
        ),
        rejected(
            "sparse file of POSIX",
            one(Tar::new().pax(&[("GNU.sparse.major", b"1")]).file("s", "")),
            "sparse",
        ),
        rejected(
            "very long path",
            one(Tar::new().pax(&[("path", long.as_bytes())]).file("x", "")),
            "has a path of more than 1000 bytes",
        ),
        rejected(
            "very long name",
            one(Tar::new().pax(&[("path", &[b'n'; 300])]).file("x", "")),
            "has a name of more than 255 bytes",
        ),
        rejected(
            "very deep path",
            one(Tar::new().pax(&[("path", &long.as_bytes()[..60])]).file("x", "")),
            "is nested deeper than 20 directories",
        ),
        rejected("deep through links", one(links), "is nested deeper than 20 directories"),
        rejected(
            "endless name of GNU",
            compressed(Tar::new().gnu(GNU_NAME, &vec![b'n'; 5 << 18]).file("x", "").end()),
            "more than 1048576 bytes",
        ),
        rejected(
            "endless attributes of POSIX",
            compressed(Tar::new().pax(&[("comment", &vec![b'n'; 5 << 18])]).file("x", "").end()),
            "more than 1048576 bytes",
        ),
        rejected("too many layers", image("x:1", &layers), "the number of layers exceeds"),
        rejected(
            "too many layers in the format of Docker",
            Files::docker("x:1", &layers).tar(),
            "the number of layers exceeds",
        ),
        rejected(
            "huge configuration",
            Files::layout("x:1", &padded, &[Tar::new().end()]).tar(),
            "the size of the configuration in bytes exceeds",
        ),
        rejected(
            "huge index",
            Files::default().with("index.json", vec![b' '; 70_000]).tar(),
            "the size of index.json in bytes exceeds",
        ),
        rejected(
            "huge list of Docker",
            Files::default().with("manifest.json", vec![b' '; 70_000]).tar(),
            "the size of manifest.json in bytes exceeds",
        ),
        rejected(
            "index with very many images",
            {
                let image = crate::archives::descriptor(crate::archives::MANIFEST, b"");
                let index = serde_json::json!({ "schemaVersion": 2, "manifests": vec![image; 60] });
                Files::default().with("index.json", bytes(&index)).tar()
            },
            "the number of images in the index exceeds",
        ),
        rejected(
            "archive with very many files",
            files.tar(),
            "number of files in the archive exceeds",
        ),
        rejected(
            "archive that is a decompression bomb",
            gzip(&Files::default().with("x", vec![0; 3 << 20]).tar()),
            "the size of the archive in bytes exceeds",
        ),
    ]
}

#[test]
fn the_limits_are_enforced() {
    check_all(floods);
}
