# gnuplot docs/experts.gp draws docs/experts.svg from docs/experts.csv.
set datafile separator ","
set terminal svg size 720,400 font "sans,12" background "white"
set output "docs/experts.svg"
set xlabel "batches of 32 sequences of 64 bytes"
set ylabel "loss, nats a byte"
set yrange [1.4:2.7]
set grid
set key top right
plot "docs/experts.csv" skip 1 using 1:4 with lines lw 2 lc rgb "#777777" \
       title "dense GPT, evaluated", \
     "" skip 1 using 1:5 with lines lw 2 lc rgb "#c03030" \
       title "8 experts (Switch), evaluated", \
     "" skip 1 using 1:2 with lines lw 1 dt 2 lc rgb "#777777" \
       title "dense GPT, training", \
     "" skip 1 using 1:3 with lines lw 1 dt 2 lc rgb "#c03030" \
       title "8 experts, training"
