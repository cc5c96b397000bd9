# SPDX-License-Identifier: Apache-2.0
# The same seeds say the same, letter for letter: once in one job and once in three, so that what a schedule is does not
# depend on what was played before it, on the address of anything, or on the process.
foreach(where "" "--replicas;any" "--cluster" "--quorum;any")
  foreach(jobs 1 3)
    execute_process(COMMAND ${SIM} ${where} --schedules ${SCHEDULES} --seed 77 --jobs ${jobs} OUTPUT_VARIABLE said)
    string(REGEX MATCH "print      [0-9a-f]+" print_${jobs} "${said}")
    execute_process(COMMAND ${SIM} ${where} --seed 91 --trace OUTPUT_VARIABLE trace_${jobs})
  endforeach()
  if(print_1 STREQUAL "" OR NOT print_1 STREQUAL print_3)
    message(FATAL_ERROR "${where}: one job says '${print_1}' and three say '${print_3}'")
  endif()
  if(trace_1 STREQUAL "" OR NOT trace_1 STREQUAL trace_3)
    message(FATAL_ERROR "${where}: seed 91 was told in two ways")
  endif()
  message("${where} ${print_1} twice")
endforeach()
