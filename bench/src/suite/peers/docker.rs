//! A Docker Engine that is there for one benchmark: its state, its socket and its cgroups are its own, it
//! changes no network of the host, and all of it goes when it is stopped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use sandbox::Limits;
use sandbox_tests::cache;
use sandbox_tests::wait::wait_for;

use super::super::process::{SEARCH_PATH, Words, must_work, words};
use super::oci::write_root;
use crate::interrupt::{OnInterrupt, stop_child};

/// An Engine that has not started or stopped by then never does.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(30);
const IMAGE: &str = "sandbox-bench";
/// Made by every Engine, whatever its state directory is.
const LEFT: &[&str] = &["/run/docker/plugins", "/run/docker"];

pub(super) struct Docker {
    _on_interrupt: OnInterrupt,
    engine: Child,
    client: Words,
    place: PathBuf,
    left: Left,
}

/// What an Engine leaves outside its directory.
#[derive(Clone)]
struct Left {
    /// The name of the cgroup that its containers are in.
    cgroup: String,
    /// Directories that were not there before.
    made: Vec<&'static str>,
}

impl Docker {
    pub(super) fn start(place: &Path) -> anyhow::Result<Self> {
        let unpacked = cache::peers().context("there is a cache")?.join("docker/usr");
        std::fs::create_dir_all(place)?;
        let made = LEFT.iter().copied().filter(|path| !Path::new(path).exists()).collect();
        let below = |name: &str| place.join(name).to_string_lossy().into_owned();
        let socket = format!("unix://{}", below("socket"));
        let (bin, sbin) = (unpacked.join("bin"), unpacked.join("sbin"));
        let log = File::create(place.join("log"))?;
        let engine = Command::new(sbin.join("dockerd"))
            .args(["--data-root", &below("data"), "--exec-root", &below("exec")])
            .args(["--pidfile", &below("pid"), "--host", &socket])
            .args(["--iptables=false", "--ip6tables=false", "--ip-forward=false"])
            .args(["--ip-masq=false", "--bridge=none"])
            .env_clear()
            .env("PATH", format!("{}:{}:{SEARCH_PATH}", bin.display(), sbin.display()))
            .env("HOME", place)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("start dockerd")?;
        let program = bin.join("docker").to_string_lossy().into_owned();
        let client = words([program.as_str(), "--host", &socket]);
        let cgroup = format!("sandbox-bench-{}", std::process::id());
        let place = place.to_owned();
        // From here on it is stopped, whatever happens.
        let (id, left) = (engine.id(), Left { cgroup, made });
        let left_too = left.clone();
        let on_interrupt = OnInterrupt::run(move || {
            stop_child(id);
            left_too.remove();
        });
        let mut docker = Self { _on_interrupt: on_interrupt, engine, client, place, left };
        docker.make_image()?;
        Ok(docker)
    }

    fn make_image(&mut self) -> anyhow::Result<()> {
        self.wait_until_answering()?;
        let (root, image) = (self.place.join("root"), self.place.join("root.tar"));
        write_root(&root)?;
        let (root, image) = (root.to_string_lossy(), image.to_string_lossy());
        must_work(&words(["/bin/tar", "-C", &root, "-cf", &image, "."]), &self.place)?;
        must_work(&[self.client.clone(), words(["import", &image, IMAGE])].concat(), &self.place)?;
        Ok(())
    }

    fn wait_until_answering(&mut self) -> anyhow::Result<()> {
        let version = [self.client.clone(), words(["version"])].concat();
        let mut last = None;
        let ended = wait_for(ENGINE_TIMEOUT, || {
            last = Some(must_work(&version, &self.place));
            let has_answered = matches!(last, Some(Ok(_)));
            // One that may not do what it needs to do ends at once.
            let has_ended = !matches!(self.engine.try_wait(), Ok(None));
            (has_answered || has_ended).then_some(has_ended)
        });
        ensure!(ended != Some(true), "dockerd has ended: {}", self.last_words());
        last.context("it was asked")??;
        Ok(())
    }

    /// The end of its log.
    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.place.join("log")).unwrap_or_default();
        log.lines().last().unwrap_or_default().to_owned()
    }

    /// What stands before the words of a program.
    pub(super) fn command(&self) -> Words {
        let usual = Limits::run();
        let (memory, pids) = (usual.memory().as_u64(), usual.pids());
        let options = format!(
            "run --rm --network none --read-only --memory {memory} --memory-swap {memory} --pids-limit {pids} \
             --cpus {} --cap-drop ALL --security-opt no-new-privileges --user 65534:65534 \
             --volume /usr:/usr:ro --tmpfs /tmp --cgroup-parent /{} {IMAGE}",
            usual.cpus(),
            self.left.cgroup
        );
        [self.client.clone(), words(options.split(' '))].concat()
    }

    /// Stops it, and removes what it leaves outside its directory.
    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        self.end()?;
        let left = self.left.cgroups();
        ensure!(left.is_empty(), "cgroups of Docker stay: {left:?}");
        Ok(())
    }

    fn end(&mut self) -> anyhow::Result<()> {
        if self.engine.try_wait()?.is_none() {
            let id = i32::try_from(self.engine.id()).ok().and_then(Pid::from_raw);
            kill_process(id.context("it has an id")?, Signal::TERM)
                .context("ask dockerd to stop")?;
            let ended = wait_for(ENGINE_TIMEOUT, || self.engine.try_wait().transpose());
            ended.context("dockerd does not stop")??;
        }
        self.left.remove();
        Ok(())
    }
}

impl Left {
    fn remove(&self) {
        wait_for(ENGINE_TIMEOUT, || {
            for cgroup in self.cgroups() {
                // It is still busy while its last container is on its way out.
                let _ = std::fs::remove_dir(cgroup);
            }
            self.cgroups().is_empty().then_some(())
        });
        for directory in &self.made {
            // In use by another process if it is not empty.
            let _ = std::fs::remove_dir(directory);
        }
    }

    /// The directories of its cgroup, in every hierarchy.
    fn cgroups(&self) -> Vec<PathBuf> {
        let below = |directory: &Path| directory.join(&self.cgroup);
        let mounts = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten();
        let hierarchies = mounts.map(|entry| below(&entry.path()));
        let all = hierarchies.chain([below(Path::new("/sys/fs/cgroup"))]);
        all.filter(|path| path.exists()).collect()
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        if self.end().is_err() {
            let _ = self.engine.kill();
            let _ = self.engine.wait();
        }
    }
}
