package objects

import "sync"

// SideBySide calls f for 0 to n-1, at most atOnce at a time; calls begin in this order. After an error no further call
// begins. When all calls have returned it returns the error of the smallest number.
func SideBySide(n, atOnce int, f func(i int) error) error {
	errs := make([]error, n)
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := 0
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1
	}
	for range min(n, atOnce) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := take(); i < n; i = take() {
				if errs[i] = f(i); errs[i] != nil {
					mu.Lock()
					next = n
					mu.Unlock()
				}
			}
		}()
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
