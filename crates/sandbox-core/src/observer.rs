use crate::{NetworkEvent, StreamKind, UsageSample};

/// Receives what happens while a stage runs. Called on the thread that supervises the stage: a slow
/// observer fills the program's pipes, which slows the program down and loses nothing.
pub trait Observer {
    /// The program wrote this.
    fn output(&mut self, stream: StreamKind, bytes: &[u8]);
    /// A sample of the program's resource usage.
    fn usage(&mut self, sample: UsageSample);
    /// The program tried to reach an address or to resolve a name.
    fn network(&mut self, _: NetworkEvent) {}
}
