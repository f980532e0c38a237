//! Observe every execution, and refuse some.
//!
//! cargo run -p sandbox --example hooks

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use sandbox::{ExecutionId, Hooks, Refusal, Report, Request, Sandbox, StagePlan, StageReport};

/// Refuses requests with too much code, and prints every execution.
struct MaxCodeSize(usize);

impl Hooks for MaxCodeSize {
    fn on_request(&self, request: &Request) -> Result<(), Refusal> {
        let size = request.code().map_or(0, str::len);
        if size > self.0 {
            return Err(Refusal::new(format!("{size} bytes of code exceed {}", self.0)));
        }
        Ok(())
    }

    fn before_stage(&self, execution: ExecutionId, plan: &StagePlan) -> Result<(), Refusal> {
        println!("{execution}: {} starts: {:?}", plan.stage, plan.process.command);
        Ok(())
    }

    fn after_stage(&self, execution: ExecutionId, stage: &StageReport) {
        println!("{execution}: {} ends: {}", stage.name, stage.status);
    }

    fn on_report(&self, report: &Report) {
        println!("{}: {}", report.id, report.status);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::builder().hooks(MaxCodeSize(100)).build()?;
    for code in ["print(6 * 7)".to_owned(), "# ".repeat(100)] {
        match sandbox.execute(Request::builder("python").code(code).build()?) {
            Ok(report) => println!("it printed {:?}", report.stdout),
            Err(error) => println!("{error}"),
        }
    }
    Ok(())
}
