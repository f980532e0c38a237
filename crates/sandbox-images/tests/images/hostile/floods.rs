use super::{Attack, limits, refused, try_all};
use crate::archives::{Files, bytes, config, gzip, image};
use crate::arena::Arena;
use crate::tar_writer::{FILE, GNU_NAME, Head, SPARSE, Tar};

fn one(layer: Tar) -> Vec<u8> {
    image("x:1", &[layer.end()])
}

/// An image whose only layer is compressed.
fn compressed(layer: Vec<u8>) -> Vec<u8> {
    let sent = gzip(&layer);
    Files::layout("x:1", &config(&[layer]), &[sent]).tar()
}

/// Ten directories inside one another.
fn ten(name: &str) -> String {
    [name; 10].join("/")
}

#[expect(clippy::too_many_lines, reason = "a flat table, each row by itself")]
fn floods(_: &Arena) -> Vec<Attack> {
    let limits = limits();
    let half = vec![0; usize::try_from(limits.file_bytes).unwrap() - 512];
    let many =
        (0..=limits.entries).fold(Tar::new(), |tar, number| tar.file(format!("f{number}"), ""));
    let many_times = (0..=limits.entries).fold(Tar::new(), |tar, _| tar.directory("same/"));
    let three = |tar: Tar| tar.file("a", &half).file("b", &half).file("c", &half);
    let mut behind_the_end = Tar::new().file("a", "").end();
    behind_the_end.resize(2 << 20, 0);
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
        refused(
            "file that says it is huge",
            one(Tar::new().entry(Head::new(FILE, b"huge", 1 << 32), b"")),
            "is larger than 524288 bytes",
        ),
        refused(
            "more bytes than an image may have",
            one(three(Tar::new())),
            "more than 1572864 bytes",
        ),
        refused(
            "bytes that are few while they are compressed",
            compressed(three(Tar::new()).end()),
            "more than 1572864 bytes",
        ),
        refused(
            "bytes behind the end of the archive",
            compressed(behind_the_end),
            "more than 1572864 bytes",
        ),
        refused(
            "bytes in several layers",
            {
                let layer = |name| Tar::new().file(name, &half).end();
                let layers = [layer("a"), layer("b"), layer("c")];
                let sent: Vec<Vec<u8>> = layers.iter().map(|layer| gzip(layer)).collect();
                Files::layout("x:1", &config(&layers), &sent).tar()
            },
            "layer 3",
        ),
        refused("too many files", compressed(many.end()), "more than 1000 files"),
        refused("too many times the same", compressed(many_times.end()), "more than 1000 files"),
        refused(
            "sparse file of GNU",
            one(Tar::new().entry(Head::new(SPARSE, b"s", 0), b"")),
            "sparse",
        ),
        refused(
            "sparse file of POSIX",
            one(Tar::new().pax(&[("GNU.sparse.major", b"1")]).file("s", "")),
            "sparse",
        ),
        refused(
            "very long path",
            one(Tar::new().pax(&[("path", long.as_bytes())]).file("x", "")),
            "has a path of more than 1000 bytes",
        ),
        refused(
            "very long name",
            one(Tar::new().pax(&[("path", &[b'n'; 300])]).file("x", "")),
            "has a name of more than 255 bytes",
        ),
        refused(
            "very deep path",
            one(Tar::new().pax(&[("path", &long.as_bytes()[..60])]).file("x", "")),
            "lies deeper than 20 directories",
        ),
        refused("deep through links", one(links), "lies deeper than 20 directories"),
        refused(
            "endless name of GNU",
            compressed(Tar::new().gnu(GNU_NAME, &vec![b'n'; 5 << 18]).file("x", "").end()),
            "more than 1048576 bytes",
        ),
        refused(
            "endless attributes of POSIX",
            compressed(Tar::new().pax(&[("comment", &vec![b'n'; 5 << 18])]).file("x", "").end()),
            "more than 1048576 bytes",
        ),
        refused("too many layers", image("x:1", &layers), "the number of its layers is over"),
        refused(
            "too many layers in the form of Docker",
            Files::docker("x:1", &layers).tar(),
            "the number of its layers is over",
        ),
        refused(
            "huge configuration",
            Files::layout("x:1", &padded, &[Tar::new().end()]).tar(),
            "the size of its configuration in bytes is over",
        ),
        refused(
            "huge index",
            Files::default().with("index.json", vec![b' '; 70_000]).tar(),
            "the size of index.json in bytes is over",
        ),
        refused(
            "huge list of Docker",
            Files::default().with("manifest.json", vec![b' '; 70_000]).tar(),
            "the size of manifest.json in bytes is over",
        ),
        refused(
            "index with very many images",
            {
                let image = crate::archives::descriptor(crate::archives::MANIFEST, b"");
                let index = serde_json::json!({ "schemaVersion": 2, "manifests": vec![image; 60] });
                Files::default().with("index.json", bytes(&index)).tar()
            },
            "the number of images in its index is over",
        ),
        refused(
            "archive with very many files",
            files.tar(),
            "number of files in the archive is over",
        ),
        refused(
            "archive that is small while it is compressed",
            gzip(&Files::default().with("x", vec![0; 3 << 20]).tar()),
            "the size of the archive in bytes is over",
        ),
    ]
}

#[test]
fn nothing_is_larger_than_it_may_be() {
    try_all(floods);
}
