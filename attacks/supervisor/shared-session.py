# title: Sits in the caller's session
# how: A program in the session that started it shares its terminal: it can read what is typed there,
#   and job control signals reach both. A session from outside shows as number 0 inside.
# without: session
# expect: held
import os

session = os.getsid(0)
print("BREACH the session is the caller's" if session == 0 else f"HELD session {session} is its own")
