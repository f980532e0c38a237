pub fn format(amount: u32) -> String {
    format!("{amount} kr")
}
