// How weights are packed.
#pragma once
#include "device/params.h"

enum {
  kFp4Unit = 576,                        // bytes of 16 rows by 64 columns of NVFP4
  kBlockFrags = 8,                       // of 16 columns, that have one scale a row: FP8 with scales for blocks
  kBlockBytes = 64 + kBlockFrags * 256,  // of 16 rows by 128 columns of it
};
