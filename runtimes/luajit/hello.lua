local name = jit and "World" or "interpreter without a compiler"
print("Hello, " .. name .. "!")
