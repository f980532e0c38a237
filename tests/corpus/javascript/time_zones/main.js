// Fixed instants in several zones, and the local zone from the environment.
const instant = new Date(Date.UTC(2024, 1, 29, 12, 30));
const show = (zone) =>
  new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "short", timeZone: zone }).format(instant);
for (const zone of ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Auckland"]) console.log(show(zone), zone);

console.log(Intl.DateTimeFormat().resolvedOptions().timeZone, instant.getTimezoneOffset());
const before = new Date(2024, 2, 31, 1, 30);
const after = new Date(before.getTime() + 3600 * 1000);
console.log(before.toString(), "->", after.getHours());
console.log(new Date(2024, 9, 27, 2, 30).toISOString(), new Date(1700000000000).toISOString());
console.log(new Date("2024-06-01T10:00:00+05:30").getTime(), new Date("2024-06-01").getTime());
console.log(new Date(2024, 0, 31 + 29).toISOString(), new Date(NaN).getTime());
console.log(new Date(8.64e15).toISOString(), new Date(-1).toISOString());
try {
  new Date("no date").toISOString();
} catch (error) {
  console.log(error.message);
}
console.log(new Intl.DateTimeFormat("de", { weekday: "long", month: "long", day: "numeric" }).format(instant));
