// Types that double: the last one has two to the power of forty fields, and the compiler has to know the
// layout of each.
package main

import "fmt"

type t0 struct{ a, b *int }
type t1 struct{ a, b t0 }
type t2 struct{ a, b t1 }
type t3 struct{ a, b t2 }
type t4 struct{ a, b t3 }
type t5 struct{ a, b t4 }
type t6 struct{ a, b t5 }
type t7 struct{ a, b t6 }
type t8 struct{ a, b t7 }
type t9 struct{ a, b t8 }
type t10 struct{ a, b t9 }
type t11 struct{ a, b t10 }
type t12 struct{ a, b t11 }
type t13 struct{ a, b t12 }
type t14 struct{ a, b t13 }
type t15 struct{ a, b t14 }
type t16 struct{ a, b t15 }
type t17 struct{ a, b t16 }
type t18 struct{ a, b t17 }
type t19 struct{ a, b t18 }
type t20 struct{ a, b t19 }
type t21 struct{ a, b t20 }
type t22 struct{ a, b t21 }
type t23 struct{ a, b t22 }
type t24 struct{ a, b t23 }
type t25 struct{ a, b t24 }
type t26 struct{ a, b t25 }
type t27 struct{ a, b t26 }
type t28 struct{ a, b t27 }
type t29 struct{ a, b t28 }
type t30 struct{ a, b t29 }
type t31 struct{ a, b t30 }
type t32 struct{ a, b t31 }
type t33 struct{ a, b t32 }
type t34 struct{ a, b t33 }
type t35 struct{ a, b t34 }
type t36 struct{ a, b t35 }
type t37 struct{ a, b t36 }
type t38 struct{ a, b t37 }
type t39 struct{ a, b t38 }
type t40 struct{ a, b t39 }

func main() {
	var value, other t40
	fmt.Println(value == other)
}
