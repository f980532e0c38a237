// Imports a declaration from a file of the host and has the compiler complain about its type, which it
// quotes. CANARY is replaced by the path.
import secret from "CANARY";

const told: "guess" = secret;
console.log(told);
