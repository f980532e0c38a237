module.exports = ["apple", "pear"];
