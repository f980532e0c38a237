"""Fixed instants in several zones, across the changes of the clock."""

import time
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

instant = datetime(2024, 2, 29, 12, 30, tzinfo=timezone.utc)
for zone in ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Auckland"]:
    print(instant.astimezone(ZoneInfo(zone)).isoformat(), zone)

berlin = ZoneInfo("Europe/Berlin")
before = datetime(2024, 3, 31, 1, 30, tzinfo=berlin)
after = (before.astimezone(timezone.utc) + timedelta(hours=1)).astimezone(berlin)
print(before.strftime("%H:%M %Z"), "->", after.strftime("%H:%M %Z"))
twice = datetime(2024, 10, 27, 2, 30, tzinfo=berlin)
print(twice.utcoffset(), twice.replace(fold=1).utcoffset())

print(time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(1_700_000_000)), time.tzname)
print(date(2024, 2, 29) + timedelta(days=366), (date(2024, 12, 25) - date(2024, 1, 1)).days)
print(date(2021, 1, 3).isocalendar()[:3], datetime.strptime("7 Mar 1999", "%d %b %Y").strftime("%A %j"))
print(datetime.fromisoformat("2024-06-01T10:00:00+05:30").timestamp())
print(datetime.fromtimestamp(2**31, timezone.utc), datetime.fromtimestamp(-1, timezone.utc))
