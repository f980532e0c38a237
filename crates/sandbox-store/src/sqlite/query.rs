use rusqlite::types::Value;

/// A query in the making. What clients chose is only ever bound, never part of the text.
pub(super) struct Query {
    pub(super) text: String,
    pub(super) values: Vec<Value>,
}

impl Query {
    pub(super) fn new(text: &'static str) -> Self {
        Self { text: text.to_owned(), values: Vec::new() }
    }

    /// Adds these words, and the values of the places in them.
    pub(super) fn then(&mut self, text: &'static str, values: impl IntoIterator<Item = Value>) {
        self.text.push_str(text);
        self.values.extend(values);
    }

    /// Adds a condition, and the values of the places in it.
    pub(super) fn and(&mut self, condition: &'static str, values: impl IntoIterator<Item = Value>) {
        self.text.push_str(" AND ");
        self.then(condition, values);
    }

    /// Adds the condition that something is none of these.
    pub(super) fn and_not_in(&mut self, what: &'static str, values: Vec<String>) {
        let places = vec!["?"; values.len()].join(", ");
        self.and(what, []);
        self.text.push_str(" NOT IN (");
        self.text.push_str(&places);
        self.text.push(')');
        self.values.extend(values.into_iter().map(Value::from));
    }
}
