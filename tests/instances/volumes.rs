//! Directories of the host in instances.

use std::path::Path;

use sandbox::{SandboxSpec, Volume, VolumeAccess};

use crate::harness::{bash, create, output, spec, with_each_backend};

#[test]
fn every_process_has_the_volumes_with_their_access() {
    with_each_backend(|backend| {
        let [shown, written] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        std::fs::write(shown.path().join("note"), "from outside\n").unwrap();
        let volume = |host: &Path, inside: &str, access| {
            Volume::new(host, Path::new(inside), access).unwrap()
        };
        let volumes = vec![
            volume(shown.path(), "/data", VolumeAccess::ReadOnly),
            volume(written.path(), "/out", VolumeAccess::ReadWrite),
        ];
        let instance = create(backend, SandboxSpec { volumes, ..spec() });
        let write = "cat /data/note; for place in /data /out; do \
             echo $place >> $place/file || echo refused; done 2>&-";
        for _ in 0..2 {
            assert_eq!(output(instance.as_ref(), bash(write)), "from outside\nrefused\n");
        }
        assert_eq!(output(instance.as_ref(), bash("cat /out/file")), "/out\n/out\n");
        drop(instance);
        assert_eq!(std::fs::read_to_string(written.path().join("file")).unwrap(), "/out\n/out\n");
        assert!(!shown.path().join("file").exists());
    });
}
