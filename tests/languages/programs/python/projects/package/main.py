import shop
from shop.till import Till

print("total", Till([3, 4]).total(), shop.__name__)
