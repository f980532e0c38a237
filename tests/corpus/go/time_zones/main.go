// Fixed instants in several zones, durations, parsing, and the local zone from the environment.
package main

import (
	"fmt"
	"time"
)

func main() {
	instant := time.Date(2024, time.February, 29, 12, 30, 0, 0, time.UTC)
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Auckland"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			panic(err)
		}
		fmt.Println(instant.In(zone).Format(time.RFC3339), name)
	}
	fmt.Println(time.Unix(1700000000, 0).Format("2006-01-02 15:04:05 MST"))
	before := time.Date(2024, time.March, 31, 1, 30, 0, 0, time.Local)
	fmt.Println(before.Add(time.Hour).Format("15:04 MST"), before.AddDate(0, 0, 1).Sub(before))
	fmt.Println(instant.AddDate(1, 0, 0).Format(time.DateOnly), instant.YearDay(), instant.Weekday())
	parsed, err := time.Parse("2 Jan 2006 15:04 -0700", "7 Mar 1999 08:05 +0530")
	fmt.Println(parsed.UTC(), err)
	_, err = time.Parse(time.DateOnly, "2023-02-29")
	fmt.Println(err)
	year, week := time.Date(2021, 1, 3, 0, 0, 0, 0, time.UTC).ISOWeek()
	fmt.Println(year, week, time.Duration(3723.5*float64(time.Second)), time.Unix(1<<31, 0).UTC())
	_, err = time.LoadLocation("Mars/Olympus")
	fmt.Println(err)
}
