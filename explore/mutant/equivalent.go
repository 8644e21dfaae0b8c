package mutant

// Equivalent says of mutants by their ids why nothing can go wrong with them. One that is killed, or that no build has,
// is listed wrongly, and a test says so.
var Equivalent = map[string]string{}
