// What has happened since a schedule began.
#pragma once

#include "scheduler.h"

namespace machine {

void note_launch(u64 steps, Outcome outcome);

}  // namespace machine
