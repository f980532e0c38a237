//! What an allow-list costs: bytes through it, against a plain connection over loopback. Both have their turn in every
//! round, with the same program as client.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};
use clap::Args;
use sandbox::{Allowlist, Limits, Request, Sandbox, Status};
use serde_json::json;

use crate::host::HostFacts;
use crate::measure::median_number;
use crate::table::{grid, publish};
use crate::usize_in;

/// The least that comes through, as a share of a plain connection.
const LEAST: f64 = 0.5;
const MIB: usize = 1 << 20;

/// Fetches or sends a number of MiB, and prints the rate.
const CLIENT: &str = "
import socket, sys, time
direction, port, much = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) << 20
buffer, total = bytearray(1 << 18), 0
with socket.create_connection(('127.0.0.1', port)) as s:
    s.sendall(direction.encode())
    begun = time.perf_counter()
    if direction == 'i':
        while total < much and (count := s.recv_into(buffer)): total += count
    else:
        while total < much: s.sendall(buffer); total += len(buffer)
        s.shutdown(socket.SHUT_WR); s.recv(1)
    took = time.perf_counter() - begun
assert total == much, total
print((total >> 20) / took)
";

#[derive(Args)]
pub(crate) struct Plan {
    /// Runs of each
    #[arg(long, default_value_t = 7, value_parser = usize_in(1..=1000))]
    rounds: usize,
    /// MiB per run
    #[arg(long, default_value_t = 512, value_parser = usize_in(1..=4000))]
    mib: usize,
    /// Directory for reach.json and reach.txt
    #[arg(long, value_name = "DIR", default_value = "bench/results")]
    results: PathBuf,
}

/// Measures, prints, and writes the results. Ends with 1 if less comes through than promised.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<ExitCode> {
    let Plan { rounds, mib, .. } = *plan;
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("listen on loopback")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, mib * MIB));
        }
    });
    let sandbox = Sandbox::new()?;
    let mut rows = Vec::new();
    for (direction, name) in [("i", "fetched"), ("o", "sent")] {
        let (mut direct, mut through) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            let arguments = [direction.to_owned(), port.to_string(), mib.to_string()];
            let rates = (bare(&arguments)?, inside(&sandbox, port, &arguments)?);
            // The first is not counted.
            if round > 0 {
                direct.push(rates.0);
                through.push(rates.1);
            }
        }
        rows.push((name, median_number(direct), median_number(through)));
    }
    let host = HostFacts::gather("");
    let rows_json = rows.iter().map(|(name, plain, through)| {
        json!({"direction": name, "plain_mib_per_s": plain, "through_mib_per_s": through, "share": through / plain})
    });
    let json = json!({"host": host.to_json(), "rounds": rounds, "mib": mib, "rows": rows_json.collect::<Vec<_>>()});
    publish("reach", &render(&host, &rows, mib, rounds), &json, Some(&plan.results))?;
    let is_enough = rows.iter().all(|(_, plain, through)| through / plain >= LEAST);
    Ok(ExitCode::from(u8::from(!is_enough)))
}

/// Gives or takes as much as it is asked for.
fn serve(mut stream: TcpStream, much: usize) {
    let (mut direction, mut buffer) = ([0], vec![0; 256 * 1024]);
    if stream.read_exact(&mut direction).is_err() {
        return;
    }
    if &direction == b"i" {
        let mut left = much;
        while left > 0 {
            let count = left.min(buffer.len());
            if stream.write_all(&buffer[..count]).is_err() {
                return;
            }
            left -= count;
        }
    } else {
        while let Ok(1..) = stream.read(&mut buffer) {}
    }
}

fn bare(arguments: &[String]) -> anyhow::Result<f64> {
    let output = Command::new("/usr/bin/python3").args(["-c", CLIENT]).args(arguments).output();
    let output = output.context("start python")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
}

fn inside(sandbox: &Sandbox, port: u16, arguments: &[String]) -> anyhow::Result<f64> {
    let allow = Allowlist::new(vec![format!("127.0.0.1:{port}").parse()?], false)?;
    // As many processors as the other has.
    let limits = Limits::run().with_cpus(4.0)?.with_wall_time(std::time::Duration::from_mins(1))?;
    let request = Request::builder("python").code(CLIENT).limits(limits).allow(allow);
    let report = sandbox.execute(request.args(arguments.iter().cloned()).build()?)?;
    ensure!(report.status == Status::Completed, "{:?} {}", report.error, report.stderr);
    Ok(report.stdout.trim().parse()?)
}

fn render(host: &HostFacts, rows: &[(&str, f64, f64)], mib: usize, rounds: usize) -> String {
    let rows = rows.iter().map(|(name, plain, through)| {
        vec![
            format!("{mib} MiB {name}"),
            format!("{plain:.0}"),
            format!("{through:.0}"),
            format!("{:.2}", through / plain),
        ]
    });
    format!(
        "Bytes through an allow-list, in MiB a second: medians of {rounds} rounds in which both have their turn. At \
         least {LEAST} of a plain connection is promised.\n\n{}\n\n{}",
        grid(&["", "plain loopback", "through it", "share"], rows),
        host.text()
    )
}
