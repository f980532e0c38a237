// Meetings in several zones, seen from a local zone south of the equator.
interface Meeting { title: string; at: Date }
const meetings: Meeting[] = [
  { title: "kick-off", at: new Date("2024-03-10T06:59:00Z") },
  { title: "review", at: new Date("2024-03-10T07:00:00Z") },
  { title: "farewell", at: new Date("2024-12-31T23:30:00Z") },
];

function parts(at: Date, timeZone: string): string {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", timeZoneName: "longOffset",
  });
  const found: Partial<Record<Intl.DateTimeFormatPartTypes, string>> = {};
  for (const { type, value } of format.formatToParts(at)) found[type] = value;
  return `${found.year}-${found.month}-${found.day} ${found.hour}:${found.minute} ${found.timeZoneName}`;
}

for (const { title, at } of meetings) console.log(title, "|", parts(at, "America/New_York"), "|", parts(at, "Asia/Kathmandu"));
const local = meetings[2]!.at;
console.log(local.getFullYear(), local.getMonth() + 1, local.getDate(), local.getHours(), local.getTimezoneOffset());

const addMonths = (date: Date, months: number): Date => new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, date.getUTCDate()));
console.log(addMonths(new Date("2024-01-31"), 1).toISOString().slice(0, 10));
const dayOfWeek = new Intl.DateTimeFormat("fr", { weekday: "long", timeZone: "UTC" });
console.log(["1969-07-20", "2000-02-29", "2100-02-28"].map((day) => dayOfWeek.format(new Date(day))).join(" "));
