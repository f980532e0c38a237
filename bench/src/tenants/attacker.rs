//! The process of the attacker's clients.
//!
//! A real attacker has a machine of its own, and what its client costs there is not the server's concern. Here it
//! shares the machine, and would take more than one of two CPUs from the server. So its clients are a process in a cgroup
//! in the background: they get the CPU time that neither the server nor its sandboxes in the foreground want, and the
//! kernel takes it back at once. The server's cost of each request is not affected, and how many the attacker has sent
//! is printed.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail, ensure};
use sandbox_linux::cgroup::{Cgroup, Hierarchy};
use serde_json::{Value, json};

use super::attack::{Attack, Tally};

/// The command of `sandbox-bench` that is the process of the clients.
pub(crate) const COMMAND: &str = "attacker";

/// The clients of one phase. They are killed if they are forgotten.
pub(super) struct Attacker {
    process: Child,
    cgroup: Box<dyn Cgroup>,
}

impl Attacker {
    /// Starts the attack.
    pub(super) fn start(
        hierarchy: &Hierarchy,
        attack: &Attack,
        clients: usize,
    ) -> anyhow::Result<Self> {
        let cgroup = hierarchy.create().context("make a cgroup for the attacker's clients")?;
        cgroup.set_background(true).context("put the attacker's clients into the background")?;
        let process = Command::new(std::env::current_exe().context("find this program")?)
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start the attacker's clients")?;
        let mut attacker = Self { process, cgroup };
        // It does nothing before it knows the server.
        attacker.cgroup.entry()?.admit(attacker.process.id()).context("move them there")?;
        let orders = json!({ "attack": attack.json(), "clients": clients });
        let stdin = attacker.process.stdin.as_mut().context("it has an input")?;
        writeln!(stdin, "{orders}").context("begin the attack")?;
        Ok(attacker)
    }

    /// Ends the attack, and returns what it has done.
    pub(super) fn end(mut self) -> anyhow::Result<Tally> {
        drop(self.process.stdin.take());
        let mut text = String::new();
        let stdout = self.process.stdout.as_mut().context("it has an output")?;
        stdout.read_to_string(&mut text).context("read what the attacker has done")?;
        let status = self.process.wait()?;
        ensure!(status.success(), "the attacker's clients ended with {status}");
        Tally::from_json(&serde_json::from_str(&text).context("read what the attacker has done")?)
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        // They have ended already, unless something failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = self.cgroup.remove();
    }
}

/// The other side: reads the orders, attacks until the input ends, and prints the tally.
pub(crate) fn serve() -> anyhow::Result<ExitCode> {
    // What is left of the machine where there are no cgroups.
    let _ = rustix::process::setpriority_process(None, 19);
    let mut orders = String::new();
    std::io::stdin().read_line(&mut orders).context("read the orders")?;
    let orders: Value = serde_json::from_str(&orders).context("read the orders")?;
    let attack = Attack::from_json(&orders["attack"])?;
    let clients = orders["clients"].as_u64().context("there is no number of clients")?;
    let is_over = AtomicBool::new(false);
    let tally = std::thread::scope(|scope| {
        let (attack, is_over) = (&attack, &is_over);
        let clients: Vec<_> = (0..usize::try_from(clients)?)
            .map(|number| scope.spawn(move || attack.run(number, is_over)))
            .collect();
        let ended = std::io::stdin().read_to_end(&mut Vec::new());
        is_over.store(true, Ordering::Relaxed);
        ended.context("wait for the end of the attack")?;
        let mut tally = Tally::default();
        for client in clients {
            match client.join() {
                Ok(of_one) => tally.merge(of_one),
                Err(_) => bail!("a client of the attacker broke off"),
            }
        }
        Ok(tally)
    })?;
    writeln!(std::io::stdout(), "{}", tally.json()).context("print the tally")?;
    Ok(ExitCode::SUCCESS)
}
